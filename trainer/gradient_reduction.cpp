#include "trainer/gradient_reduction.h"

#include <cstring>
#include <utility>

#include "trainer/sums.h"

namespace everstep::trainer {
namespace {

Buffer tied_part(const StageLayout::Entry& entry, const Buffer& sums, std::size_t element_bytes) {
  return sums.part(entry.offset * element_bytes, entry.parameter.elements() * element_bytes);
}

}  // namespace

GradientReduction::GradientReduction(Transport& transport, const scheduler::Schedule& schedule,
                                     Accumulation accumulation, const FrameHeader& job)
    : transport_(transport), schedule_(schedule), accumulation_(accumulation), job_(job) {}

void GradientReduction::start(std::int64_t window, int stage, const StageLayout& layout, const Buffer& sums) {
  const int owner_device = schedule_.placement.owner_of(stage);
  const int group = schedule_.group_of(transport_.worker());
  if (schedule_.device_of(transport_.worker()) != owner_device) {
    FrameHeader header = job_;
    header.kind = FrameKind::kReplicaSum;
    header.window = window;
    header.stage = stage;
    send_in_pieces(transport_, group * schedule_.depth() + owner_device, header, sums);
    return;
  }
  active_.push_back({steps_of(window, stage, layout, sums), std::nullopt});
  if (group != 0 || !one_owner_of_tied()) return;
  for (const StageLayout::Entry& entry : layout.entries) {
    if (entry.parameter.tied) tied_here_.push_back(tied_part(entry, sums, sum_bytes(accumulation_)));
  }
}

// The load spreads over the groups, but the tied sums need both their owners in one.
int GradientReduction::root_group(int stage) const {
  const bool may_be_tied = stage == 0 || stage == schedule_.placement.stages() - 1;
  return may_be_tied ? 0 : stage % schedule_.request.width;
}

bool GradientReduction::one_owner_of_tied() const {
  const scheduler::Placement& placement = schedule_.placement;
  return placement.owner_of(0) == placement.owner_of(placement.stages() - 1);
}

std::deque<GradientReduction::Step> GradientReduction::steps_of(std::int64_t window, int stage,
                                                                const StageLayout& layout, const Buffer& sums) const {
  const scheduler::Placement& placement = schedule_.placement;
  const int depth = schedule_.depth();
  const int group = schedule_.group_of(transport_.worker());
  const int device = schedule_.device_of(transport_.worker());
  const int root = root_group(stage);
  FrameHeader header = job_;
  header.window = window;
  std::deque<Step> steps;
  const auto add = [&](Step::Kind kind, int peer, FrameKind frame, int about_stage, const Buffer& part) {
    header.kind = frame;
    header.stage = about_stage;
    steps.push_back({kind, peer, header, part});
  };
  for (const int replica : placement.replicas_of(stage)) {
    if (replica != device) add(Step::Kind::kAdd, group * depth + replica, FrameKind::kReplicaSum, stage, sums);
  }
  const Step until_finish{Step::Kind::kUntilFinish, -1, {}, {}};
  if (group != root) {
    add(Step::Kind::kSend, root * depth + device, FrameKind::kGroupSum, stage, sums);
    steps.push_back(until_finish);
    add(Step::Kind::kStore, root * depth + device, FrameKind::kTotal, stage, sums);
    return steps;
  }
  const auto for_other_groups = [&](Step::Kind kind, FrameKind frame) {
    for (int other = 0; other < schedule_.request.width; ++other) {
      if (other != root) add(kind, other * depth + device, frame, stage, sums);
    }
  };
  for_other_groups(Step::Kind::kAdd, FrameKind::kGroupSum);
  steps.push_back(until_finish);
  if (const StageLayout::Entry* entry = layout.tied()) {
    const Buffer part = tied_part(*entry, sums, sum_bytes(accumulation_));
    if (!one_owner_of_tied() && stage == 0) {
      add(Step::Kind::kAdd, placement.owner_of(placement.stages() - 1), FrameKind::kTiedSum, 0, part);
      add(Step::Kind::kSend, placement.owner_of(placement.stages() - 1), FrameKind::kTiedSum, 0, part);
    } else if (!one_owner_of_tied()) {
      add(Step::Kind::kSend, placement.owner_of(0), FrameKind::kTiedSum, 0, part);
      add(Step::Kind::kStore, placement.owner_of(0), FrameKind::kTiedSum, 0, part);
    }
  }
  for_other_groups(Step::Kind::kSend, FrameKind::kTotal);
  return steps;
}

Result<bool> GradientReduction::advance(Owned& owned, std::optional<std::chrono::milliseconds> timeout) {
  while (!owned.steps.empty()) {
    const Step& step = owned.steps.front();
    if (step.kind == Step::Kind::kUntilFinish) break;
    if (step.kind == Step::Kind::kSend) {
      send_in_pieces(transport_, step.peer, step.header, step.sums);
    } else {
      if (!owned.receiver) {
        const auto add_as = step.kind == Step::Kind::kAdd ? std::optional(accumulation_) : std::nullopt;
        owned.receiver.emplace(transport_, step.peer, step.header, step.sums, add_as);
      }
      if (timeout) {
        EVERSTEP_TRY(owned.receiver->finish(*timeout));
      } else {
        const auto complete = owned.receiver->advance();
        if (!complete) return complete.error();
        if (!*complete) return false;
      }
      owned.receiver.reset();
    }
    owned.steps.pop_front();
  }
  return true;
}

Status GradientReduction::advance() {
  for (Owned& owned : active_) {
    const auto reached = advance(owned, std::nullopt);
    if (!reached) return reached.error();
    if (!*reached) break;
  }
  return {};
}

Status GradientReduction::finish(std::chrono::milliseconds timeout) {
  EVERSTEP_TRY(advance_all(timeout));
  add_tied_locally();
  for (Owned& owned : active_) owned.steps.pop_front();  // kUntilFinish
  EVERSTEP_TRY(advance_all(timeout));
  active_.clear();
  return {};
}

Status GradientReduction::advance_all(std::chrono::milliseconds timeout) {
  for (Owned& owned : active_) EVERSTEP_TRY(advance(owned, timeout));
  return {};
}

void GradientReduction::add_tied_locally() {
  if (tied_here_.empty()) return;
  add_sums(accumulation_, tied_here_[0], tied_here_[1]);
  std::memcpy(tied_here_[1].data, tied_here_[0].data, tied_here_[0].size);
  tied_here_.clear();
}

}  // namespace everstep::trainer
