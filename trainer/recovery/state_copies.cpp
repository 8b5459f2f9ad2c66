#include "trainer/recovery/state_copies.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "trainer/recovery/owner_state.h"

namespace everstep::trainer {
namespace {

StagedStage allocate(const ModelConfig& model, const GuardedStage& guarded, DeviceMemory& memory) {
  StagedStage stage{guarded.stage, guarded.layout, {}};
  for (const auto tensor : kOwnerState) {
    const std::size_t bytes = static_cast<std::size_t>(guarded.layout.elements) * owner_element_bytes(tensor, model);
    if (bytes > 0) stage.state.*tensor = memory.allocate_pinned(bytes);
  }
  return stage;
}

bool has_any(const CopiedState& state) {
  return (state.complete.owned && !state.owned.empty()) || (state.complete.guarded && !state.guarded.empty());
}

}  // namespace

std::vector<StateCopies::CopiedVersion> StateCopies::versions() const {
  std::vector<CopiedVersion> versions;
  for (const auto* version : {&newest_, &previous_}) {
    if (*version && has_any(**version)) versions.push_back({(*version)->resume.version, (*version)->complete});
  }
  return versions;
}

std::shared_ptr<const CopiedState> StateCopies::at(Version version) const {
  for (const auto* state : {&newest_, &previous_}) {
    if (*state && (*state)->resume.version == version && has_any(**state)) {
      return std::make_shared<const CopiedState>(**state);
    }
  }
  return nullptr;
}

void StateCopies::begin(const ModelConfig& model, const std::vector<GuardedStage>& guarded, DeviceMemory& memory) {
  EVERSTEP_CHECK(!newest_ && !previous_ && next_guarded_.empty(), "copies of another run");
  // Two versions, one of which is always being received or is the newest; the other one is handed back by
  // keep_newest().
  memory_ = &memory;
  previous_.emplace();
  for (const GuardedStage& stage : guarded) {
    next_guarded_.push_back(allocate(model, stage, memory));
    previous_->guarded.push_back(allocate(model, stage, memory));
  }
}

const std::vector<StagedStage>& StateCopies::add(ResumePoint resume, std::vector<StagedStage> owned) {
  EVERSTEP_CHECK(!newest_, "a version would be lost that others may need");
  EVERSTEP_CHECK(previous_ && (!has_any(*previous_) || previous_->resume.version.next() == resume.version),
                 "a version is left out");
  newest_.emplace();
  newest_->resume = std::move(resume);
  newest_->owned = std::move(owned);
  newest_->guarded = std::exchange(next_guarded_, {});
  newest_->complete = {true, newest_->guarded.empty()};
  return newest_->guarded;
}

void StateCopies::guarded_came() {
  EVERSTEP_CHECK(newest_, "copies of no version came");
  newest_->complete.guarded = true;
}

void StateCopies::keep_newest() {
  EVERSTEP_CHECK(newest_ && newest_->complete == CopyParts({true, true}), "a version that is not complete is no copy");
  CopiedState before = *std::exchange(previous_, std::nullopt);
  next_guarded_ = std::move(before.guarded);
  previous_ = std::exchange(newest_, std::nullopt);
  before.owned.resize(previous_->owned.size());
  for (std::size_t i = 0; i < before.owned.size(); ++i) {
    StagedStage& copy = before.owned[i];
    const StagedStage& source = previous_->owned[i];
    copy.stage = source.stage;
    copy.layout = source.layout;
    for (const auto tensor : kOwnerState) {
      const Mark here = copy_out_into(*memory_, copy.state.*tensor, source.state.*tensor);
      if (here) previous_is_here_ = here;
    }
  }
  previous_->owned = std::move(before.owned);
}

void StateCopies::end() {
  wait_for(std::exchange(previous_is_here_, nullptr));
  if (!newest_) return;
  for (StagedStage& stage : newest_->owned) {
    for (const auto tensor : kOwnerState) stage.state.*tensor = memory_->fetch(stage.state.*tensor);
  }
}

std::vector<WindowHistory> untold_history(std::vector<WindowHistory> known, Position committed, Position origin,
                                          int window) {
  const auto place_of = [window](const WindowHistory& entry) { return entry.window * window + entry.first; };
  std::erase_if(known, [&](const WindowHistory& entry) {
    return entry.window * window + entry.end <= committed.value || place_of(entry) >= origin.value;
  });
  std::stable_sort(known.begin(), known.end(),
                   [&](const WindowHistory& a, const WindowHistory& b) { return place_of(a) < place_of(b); });
  // By place, not by content: a loss that is not a number differs from itself.
  const auto is_same = [&](const WindowHistory& a, const WindowHistory& b) { return place_of(a) == place_of(b); };
  known.erase(std::unique(known.begin(), known.end(), is_same), known.end());
  return known;
}

}  // namespace everstep::trainer
