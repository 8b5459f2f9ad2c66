#include "scheduler/clockwork.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "scheduler/orders/orders.h"

// Every op has its slot (see clockwork.h), and a device runs its ops in the order of their slots. So the generator
// walks along the slots of a segment and asks which op of the device is due.
namespace everstep::scheduler {
namespace {

// A round of the segment: whose it is, and how many of its minibatches exist.
struct RoundName {
  std::int64_t window = 0;
  int round = 0;
  int minibatches = 0;
};

// An update inside the segment, with the last slot before it.
struct DueUpdate {
  Clock::Slot slot = 0;
  std::int64_t window = 0;
};

// A trial step, with the first slot after it: the next window's first one. All that it waits for stands before that
// slot, and all that waits for it behind it.
struct DueStep {
  Clock::Slot slot = 0;
  Op op;
};

struct SegmentRounds {
  std::vector<RoundName> rounds;
  std::vector<DueStep> steps;
  std::vector<DueUpdate> updates;  // of all windows but the last, whose update ends the segment
};

SegmentRounds rounds_of(const Segment& segment, const Clock& clock) {
  SegmentRounds all;
  for (const WindowWork& work : segment) {
    for (int round = 0; round < static_cast<int>(work.rounds.size()); ++round) {
      all.rounds.push_back({work.window, round, work.rounds[round]});
    }
    if (work.step) all.steps.push_back({clock.round_length() * std::ssize(all.rounds), *work.step});
    if (work.window == segment.back().window) break;
    all.updates.push_back({clock.update(static_cast<std::int64_t>(all.rounds.size())), work.window});
  }
  return all;
}

// What a device does in one of the 2P slots of every round.
struct Turn {
  OpKind kind = OpKind::kForward;
  int stage = 0;
  int pipeline = 0;
  Clock::Slot first = 0;  // in round 0
};

std::vector<Turn> turns_of(const Placement& placement, const Clock& clock, int device) {
  std::vector<std::optional<Turn>> turns(clock.round_length());
  const auto take = [&](const Turn& turn) {
    std::optional<Turn>& slot = turns[turn.first % clock.round_length()];
    EVERSTEP_CHECK(!slot, "two ops of a device in one slot");
    slot = turn;
  };
  for (const int stage : placement.stages_on(device)) {
    const int pipeline = clock.pipeline_at(device, stage);
    take({OpKind::kForward, stage, pipeline, clock.forward(pipeline, 0, stage)});
    take({OpKind::kBackward, stage, pipeline, clock.backward(pipeline, 0, stage)});
  }
  std::vector<Turn> all;
  for (const std::optional<Turn>& turn : turns) all.push_back(turn.value());
  return all;
}

std::vector<Op> order_of(const std::vector<Turn>& turns, const SegmentRounds& segment, const Clock& clock) {
  std::vector<Op> ops;
  ops.reserve(segment.rounds.size() * turns.size() + segment.updates.size());
  auto update = segment.updates.begin();
  auto step = segment.steps.begin();
  const Clock::Slot end = clock.update(static_cast<std::int64_t>(segment.rounds.size())) + 1;
  for (Clock::Slot slot = 0; slot < end; ++slot) {
    for (; step != segment.steps.end() && step->slot <= slot; ++step) ops.push_back(step->op);
    for (; update != segment.updates.end() && update->slot < slot; ++update) ops.push_back(update_of(update->window));
    const Turn& turn = turns[slot % clock.round_length()];
    const Clock::Slot round = (slot - turn.first) / clock.round_length();
    if (slot < turn.first || round >= std::ssize(segment.rounds)) continue;
    const RoundName& name = segment.rounds[round];
    if (turn.pipeline >= name.minibatches) continue;
    ops.push_back({turn.kind, turn.stage, turn.pipeline, name.round, name.window});
  }
  for (; step != segment.steps.end(); ++step) ops.push_back(step->op);
  for (; update != segment.updates.end(); ++update) ops.push_back(update_of(update->window));
  return ops;
}

}  // namespace

OrderGenerator clockwork_generator(const Placement& placement, int lag) {
  const Clock clock(placement.depth(), placement.pipelines(), lag);
  std::vector<std::vector<Turn>> turns;
  for (int device = 0; device < placement.depth(); ++device) turns.push_back(turns_of(placement, clock, device));
  return [clock, turns = std::move(turns)](const Segment& segment) {
    const SegmentRounds rounds = rounds_of(segment, clock);
    DeviceOrders orders;
    for (const std::vector<Turn>& device : turns) orders.push_back(order_of(device, rounds, clock));
    return orders;
  };
}

}  // namespace everstep::scheduler
