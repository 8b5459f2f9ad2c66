#include "trainer/loop/copy_keeper.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/recovery/owner_state.h"
#include "trainer/update/gradient_reduction.h"

namespace everstep::trainer {

Status CopyKeeper::check_guards(const TrainOptions& options, const scheduler::Schedule& shape) {
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
      const bool is_worker = guard >= 0 && guard < std::ssize(shape.workers);
      const bool is_owner = is_worker && shape.device_of(guard) == shape.placement.owner_of(stage);
      if (is_worker && !is_owner && !is_named_twice) continue;
      return invalid_argument("worker " + std::to_string(guard) + " cannot guard stage " + std::to_string(stage),
                              "a guard is another worker of the plan than the stage's owners, and named once");
    }
  }
  return {};
}

CopyKeeper::CopyKeeper(Transport& transport, const TrainOptions& options, const scheduler::Schedule& shape,
                       const std::vector<StageLayout>& layouts, StateCopies& copies, DeviceMemory& memory)
    : transport_(transport), options_(options), shape_(shape), copies_(copies) {
  std::vector<GuardedStage> guarded;
  for (std::size_t stage = 0; stage < options.guards.size(); ++stage) {
    const std::vector<int>& guards = options.guards[stage];
    const bool is_guard = std::find(guards.begin(), guards.end(), transport.worker()) != guards.end();
    if (is_guard) guarded.push_back({static_cast<int>(stage), layouts[stage]});
  }
  copies_.begin(options.model, guarded, memory);
}

int CopyKeeper::sender_of(int stage) const {
  return root_group_of(shape_, stage) * shape_.depth() + shape_.placement.owner_of(stage);
}

// Stages ascending on both sides, so that links stay in order. Receives overwrite the version before the one that
// everybody has: the meeting before keep_newest() proved that.
void CopyKeeper::add(ResumePoint resume, std::vector<StagedStage> owned) {
  FrameHeader of_version;
  of_version.lineage = options_.lineage;
  of_version.generation = options_.generation;
  of_version.kind = FrameKind::kCopy;
  of_version.window = resume.version.value;
  const auto for_each_tensor = [&](const StagedStage& stage, auto visit) {
    FrameHeader header = of_version;
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
  for (const StagedStage& stage : copies_.add(std::move(resume), std::move(owned))) {
    for_each_tensor(stage, [&](const FrameHeader& header, const Buffer& into) {
      receivers_.emplace_back(transport_, sender_of(stage.stage), header, into, Channel::kCopies);
    });
  }
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
  return {};
}

}  // namespace everstep::trainer
