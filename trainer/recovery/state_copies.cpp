#include "trainer/recovery/state_copies.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "trainer/recovery/owner_state.h"

namespace everstep::trainer {
namespace {

StagedStage allocate(const ModelConfig& model, const GuardedStage& guarded) {
  StagedStage stage{guarded.stage, guarded.layout, {}};
  for (const auto tensor : kOwnerState) {
    const std::size_t bytes = static_cast<std::size_t>(guarded.layout.elements) * owner_element_bytes(tensor, model);
    if (bytes > 0) stage.state.*tensor = allocate_scratch(bytes);
  }
  return stage;
}

bool has_any(const CopiedState& state) {
  return (state.complete.owned && !state.owned.empty()) || (state.complete.guarded && !state.guarded.empty());
}

}  // namespace

std::vector<StateCopies::Held> StateCopies::held() const {
  std::vector<Held> held;
  for (const auto* version : {&newest_, &previous_}) {
    if (*version && has_any(**version)) held.push_back({(*version)->resume.version, (*version)->complete});
  }
  return held;
}

std::shared_ptr<const CopiedState> StateCopies::at(Version version) const {
  for (const auto* held : {&newest_, &previous_}) {
    if (*held && (*held)->resume.version == version && has_any(**held)) {
      return std::make_shared<const CopiedState>(**held);
    }
  }
  return nullptr;
}

void StateCopies::begin(const ModelConfig& model, const std::vector<GuardedStage>& guarded) {
  EVERSTEP_CHECK(!newest_ && !previous_ && next_guarded_.empty(), "copies of another run");
  // Two versions, one of which is always being received or is the newest; the other one is handed back by
  // keep_newest().
  previous_.emplace();
  for (const GuardedStage& stage : guarded) {
    next_guarded_.push_back(allocate(model, stage));
    previous_->guarded.push_back(allocate(model, stage));
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
    StagedStage& kept = before.owned[i];
    const StagedStage& source = previous_->owned[i];
    kept.stage = source.stage;
    kept.layout = source.layout;
    for (const auto tensor : kOwnerState) copy_into(kept.state.*tensor, source.state.*tensor);
  }
  previous_->owned = std::move(before.owned);
}

std::vector<WindowHistory> untold_history(std::vector<WindowHistory> known, Position committed, Position base,
                                          int window) {
  const auto place_of = [window](const WindowHistory& entry) { return entry.window * window + entry.first; };
  std::erase_if(known, [&](const WindowHistory& entry) {
    return entry.window * window + entry.end <= committed.value || place_of(entry) >= base.value;
  });
  std::stable_sort(known.begin(), known.end(),
                   [&](const WindowHistory& a, const WindowHistory& b) { return place_of(a) < place_of(b); });
  // By place, not by content: a loss that is not a number differs from itself.
  const auto is_same = [&](const WindowHistory& a, const WindowHistory& b) { return place_of(a) == place_of(b); };
  known.erase(std::unique(known.begin(), known.end(), is_same), known.end());
  return known;
}

}  // namespace everstep::trainer
