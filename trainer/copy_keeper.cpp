#include "trainer/copy_keeper.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/gradient_reduction.h"
#include "trainer/owner_state.h"
#include "trainer/resume_wire.h"

namespace everstep::trainer {
namespace {

constexpr int kAnnouncer = 0;  // tells spares of versions, and hears from them

bool contains(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

}  // namespace

Status CopyKeeper::check_guards(const TrainOptions& options, const scheduler::Schedule& shape,
                                const Transport& transport) {
  if (options.guards.empty()) return {};
  if (std::ssize(options.guards) != shape.placement.stages()) {
    return invalid_argument("guards are given for " + std::to_string(options.guards.size()) + " stages instead of " +
                            std::to_string(shape.placement.stages()));
  }
  for (int stage = 0; stage < shape.placement.stages(); ++stage) {
    std::vector<int> guards = options.guards[stage];
    std::sort(guards.begin(), guards.end());
    const bool is_named_twice = std::adjacent_find(guards.begin(), guards.end()) != guards.end();
    for (const int guard : guards) {
      const bool is_owner =
          guard < std::ssize(shape.workers) && shape.device_of(guard) == shape.placement.owner_of(stage);
      if (guard >= 0 && guard < transport.workers() && !is_owner && !is_named_twice) continue;
      return invalid_argument("worker " + std::to_string(guard) + " cannot guard stage " + std::to_string(stage),
                              "a guard is another worker than the stage's owners, and named once");
    }
  }
  return {};
}

CopyKeeper::CopyKeeper(Transport& transport, const TrainOptions& options, const scheduler::Schedule& shape,
                       const std::vector<StageLayout>& layouts, StateCopies& copies)
    : transport_(transport), options_(options), shape_(shape), copies_(copies) {
  std::vector<GuardedStage> guarded;
  for (std::size_t stage = 0; stage < options.guards.size(); ++stage) {
    if (contains(options.guards[stage], transport.worker())) {
      guarded.push_back({static_cast<int>(stage), layouts[stage]});
    }
    for (const int guard : options.guards[stage]) {
      if (guard >= std::ssize(shape.workers) && !contains(spares_, guard)) spares_.push_back(guard);
    }
  }
  std::sort(spares_.begin(), spares_.end());
  copies_.begin(options.model, guarded);
}

FrameHeader CopyKeeper::about(FrameKind kind, Version version) const {
  FrameHeader header;
  header.lineage = options_.lineage;
  header.generation = options_.generation;
  header.kind = kind;
  header.window = version.value;
  return header;
}

int CopyKeeper::sender_of(int stage) const {
  return root_group_of(shape_, stage) * shape_.depth() + shape_.placement.owner_of(stage);
}

// Stages ascending on both sides, so that links stay in order. Receives overwrite the version before the one that
// everybody has: the meeting before keep_newest() proved that.
void CopyKeeper::add(const ResumePoint& resume, std::vector<StagedStage> owned) {
  version_ = resume.version;
  const auto for_each_tensor = [&](const StagedStage& stage, auto visit) {
    FrameHeader header = about(FrameKind::kCopy, version_);
    header.stage = stage.stage;
    for (const auto tensor : kOwnerState) {
      if (!(stage.state.*tensor).empty()) visit(header, stage.state.*tensor);
      ++header.minibatch;
    }
  };
  for (const StagedStage& stage : owned) {
    if (options_.guards.empty() || sender_of(stage.stage) != transport_.worker()) continue;
    for (const int guard : options_.guards[stage.stage]) {
      for_each_tensor(stage, [&](const FrameHeader& header, const Buffer& bytes) {
        send_in_pieces(transport_, guard, header, bytes, Channel::kCopies);
      });
    }
  }
  for (const StagedStage& stage : copies_.add(resume, std::move(owned))) {
    for_each_tensor(stage, [&](const FrameHeader& header, const Buffer& into) {
      receivers_.emplace_back(transport_, sender_of(stage.stage), header, into, std::nullopt, Channel::kCopies);
    });
  }
  if (transport_.worker() != kAnnouncer) return;
  ResumePoint without_past = resume;
  without_past.history.clear();
  announce(without_past);
}

void CopyKeeper::announce(const std::optional<ResumePoint>& resume) {
  for (const int spare : spares_) {
    send_resume(transport_, spare, about(FrameKind::kResume, Version{announced_}), resume);
  }
  ++announced_;
}

Status CopyKeeper::advance() {
  while (!receivers_.empty()) {
    const auto is_over = receivers_.front().advance();
    if (!is_over) return is_over.error();
    if (!*is_over) return {};
    receivers_.pop_front();
    if (receivers_.empty()) copies_.guarded_came();
  }
  return {};
}

Status CopyKeeper::finish(std::chrono::milliseconds timeout) {
  for (; !receivers_.empty(); receivers_.pop_front()) EVERSTEP_TRY(receivers_.front().finish(timeout));
  copies_.guarded_came();
  if (transport_.worker() != kAnnouncer) return {};
  std::vector<ReceiveId> confirmations;
  for (const int spare : spares_) {
    confirmations.push_back(
        transport_.post_receive(spare, Channel::kRecords, about(FrameKind::kCopiesCame, version_), {}));
  }
  for (const ReceiveId confirmation : confirmations) EVERSTEP_TRY(transport_.wait(confirmation, timeout));
  return {};
}

void CopyKeeper::dismiss_spares() {
  if (transport_.worker() == kAnnouncer) announce(std::nullopt);
}

Result<std::optional<ResumePoint>> CopyKeeper::next_version(std::chrono::milliseconds timeout) {
  return receive_resume(transport_, kAnnouncer, about(FrameKind::kResume, Version{announced_++}), timeout);
}

void CopyKeeper::confirm() {
  transport_.send(kAnnouncer, Channel::kRecords, about(FrameKind::kCopiesCame, version_), {});
}

}  // namespace everstep::trainer
