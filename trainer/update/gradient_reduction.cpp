#include "trainer/update/gradient_reduction.h"

#include <algorithm>
#include <utility>

#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

Buffer tied_part(const StageLayout::Entry& entry, const Buffer& sums, std::size_t element_bytes) {
  return sums.part(entry.offset * element_bytes, entry.parameter.elements() * element_bytes);
}

}  // namespace

GradientReduction::GradientReduction(Transport& transport, const scheduler::Schedule& schedule,
                                     Accumulation accumulation, const FrameHeader& job, DeviceMemory& memory,
                                     Channel channel)
    : transport_(transport),
      schedule_(schedule),
      accumulation_(accumulation),
      job_(job),
      memory_(memory),
      channel_(channel) {}

FrameHeader GradientReduction::about(std::int64_t window, int round, int stage) const {
  FrameHeader header = job_;
  header.window = window;
  header.round = round;
  header.stage = stage;
  return header;
}

// What a replica does that is not the owner.
bool GradientReduction::sends_to_owner(FrameHeader about, FrameKind kind, const Buffer& sums) {
  const int owner = schedule_.placement.owner_of(about.stage);
  if (schedule_.device_of(transport_.worker()) == owner) return false;
  about.kind = kind;
  send_in_pieces(transport_, schedule_.group_of(transport_.worker()) * schedule_.depth() + owner, about, sums,
                 channel_);
  return true;
}

void GradientReduction::start(std::int64_t window, int stage, const StageLayout& layout, const Buffer& sums) {
  const FrameHeader header = about(window, 0, stage);
  if (sends_to_owner(header, FrameKind::kReplicaSum, sums)) return;
  active_.push_back({steps_of(header, layout, sums), false, std::nullopt});
  if (schedule_.group_of(transport_.worker()) != 0 || !one_owner_of_tied()) return;
  for (const StageLayout::Entry& entry : layout.entries) {
    if (entry.parameter.tied) tied_here_.push_back(tied_part(entry, sums, sum_bytes(accumulation_)));
  }
}

void GradientReduction::capture(std::int64_t window, int round, int stage, const Buffer& sums) {
  const FrameHeader header = about(window, round, stage);
  if (sends_to_owner(header, FrameKind::kCapturedSum, sums)) return;
  active_.push_back(
      {steps_to_root(header, {FrameKind::kCapturedSum, FrameKind::kCapturedGroupSum}, sums), true, std::nullopt});
}

bool GradientReduction::is_capturing() const {
  return std::any_of(active_.begin(), active_.end(), [](const Owned& owned) { return owned.is_capture; });
}

bool GradientReduction::has_all_sums() const {
  return std::all_of(active_.begin(), active_.end(), [](const Owned& owned) {
    return owned.steps.empty() || owned.steps.front().kind == Step::Kind::kUntilFinish;
  });
}

bool GradientReduction::one_owner_of_tied() const {
  const scheduler::Placement& placement = schedule_.placement;
  return placement.owner_of(0) == placement.owner_of(placement.stages() - 1);
}

std::deque<GradientReduction::Step> GradientReduction::steps_to_root(FrameHeader about, const SumKinds& kinds,
                                                                     const Buffer& sums) const {
  const int depth = schedule_.depth();
  const int group = schedule_.group_of(transport_.worker());
  const int device = schedule_.device_of(transport_.worker());
  const int root = root_group_of(schedule_, about.stage);
  std::deque<Step> steps;
  about.kind = kinds.of_replicas;
  for (const int replica : schedule_.placement.replicas_of(about.stage)) {
    if (replica != device) steps.push_back({Step::Kind::kAdd, group * depth + replica, about, sums});
  }
  about.kind = kinds.of_groups;
  if (group != root) {
    steps.push_back({Step::Kind::kSend, root * depth + device, about, sums});
    return steps;
  }
  for (int other = 0; other < schedule_.request.width; ++other) {
    if (other != root) steps.push_back({Step::Kind::kAdd, other * depth + device, about, sums});
  }
  return steps;
}

std::deque<GradientReduction::Step> GradientReduction::steps_of(const FrameHeader& about, const StageLayout& layout,
                                                                const Buffer& sums) const {
  const scheduler::Placement& placement = schedule_.placement;
  const int depth = schedule_.depth();
  const int device = schedule_.device_of(transport_.worker());
  const int root = root_group_of(schedule_, about.stage);
  std::deque<Step> steps = steps_to_root(about, {FrameKind::kReplicaSum, FrameKind::kGroupSum}, sums);
  steps.push_back({Step::Kind::kUntilFinish, -1, {}, {}});
  FrameHeader total = about;
  total.kind = FrameKind::kTotal;
  if (schedule_.group_of(transport_.worker()) != root) {
    steps.push_back({Step::Kind::kStore, root * depth + device, total, sums});
    return steps;
  }
  if (const StageLayout::Entry* entry = layout.tied(); entry != nullptr && !one_owner_of_tied()) {
    FrameHeader tied = about;
    tied.kind = FrameKind::kTiedSum;
    tied.stage = 0;
    const bool is_first = about.stage == 0;
    const int other = placement.owner_of(is_first ? placement.stages() - 1 : 0);
    const Buffer part = tied_part(*entry, sums, sum_bytes(accumulation_));
    steps.push_back({is_first ? Step::Kind::kAdd : Step::Kind::kSend, other, tied, part});
    steps.push_back({is_first ? Step::Kind::kSend : Step::Kind::kStore, other, tied, part});
  }
  for (int other = 0; other < schedule_.request.width; ++other) {
    if (other != root) steps.push_back({Step::Kind::kSend, other * depth + device, total, sums});
  }
  return steps;
}

// One step at a time receives, so that all can use the same staging.
void GradientReduction::receive(const Step& step, std::optional<PieceReceiver>& receiver) {
  if (step.kind == Step::Kind::kStore) {
    receiver.emplace(transport_, step.peer, step.header, step.sums, channel_);
  } else {
    fit_staging(staging_, memory_, step.sums.size);
    receiver.emplace(transport_, step.peer, step.header, step.sums, accumulation_, channel_, memory_, staging_);
  }
}

Result<bool> GradientReduction::advance(Owned& owned, std::optional<std::chrono::milliseconds> timeout) {
  while (!owned.steps.empty()) {
    const Step& step = owned.steps.front();
    if (step.kind == Step::Kind::kUntilFinish) break;
    if (step.kind == Step::Kind::kSend) {
      send_in_pieces(transport_, step.peer, step.header, step.sums, channel_);
    } else {
      if (!owned.receiver) {
        receive(step, owned.receiver);
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
  forget_ended();
  return {};
}

Status GradientReduction::finish(std::chrono::milliseconds timeout) {
  if (!is_past_sums_) {
    EVERSTEP_TRY(advance_all(timeout));
    pass_sums();
  }
  EVERSTEP_TRY(advance_all(timeout));
  active_.clear();
  is_past_sums_ = false;
  return {};
}

Result<bool> GradientReduction::advance_to_end() {
  EVERSTEP_TRY(advance());
  if (!is_past_sums_) {
    if (!has_all_sums()) return false;
    pass_sums();
    is_past_sums_ = true;
    EVERSTEP_TRY(advance());
  }
  is_past_sums_ = !active_.empty();
  return !is_past_sums_;
}

void GradientReduction::pass_sums() {
  forget_ended();
  add_tied_locally();
  for (Owned& owned : active_) owned.steps.pop_front();  // kUntilFinish
}

Status GradientReduction::advance_all(std::chrono::milliseconds timeout) {
  for (Owned& owned : active_) EVERSTEP_TRY(advance(owned, timeout));
  return {};
}

void GradientReduction::forget_ended() {
  active_.remove_if([](const Owned& owned) { return owned.steps.empty(); });
}

void GradientReduction::add_tied_locally() {
  if (tied_here_.empty()) return;
  memory_.add_sums(accumulation_, tied_here_[0], tied_here_[1]);
  memory_.copy(tied_here_[1], tied_here_[0]);
  tied_here_.clear();
}

// The load spreads over the groups, but the tied sums need both their owners in one.
int root_group_of(const scheduler::Schedule& schedule, int stage) {
  const bool may_be_tied = stage == 0 || stage == schedule.placement.stages() - 1;
  return may_be_tied ? 0 : stage % schedule.request.width;
}

}  // namespace everstep::trainer
