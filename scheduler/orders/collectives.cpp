#include "scheduler/orders/collectives.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

// After which rounds of a slice the gradients are wanted, and as what.
struct Mark {
  OpKind kind = OpKind::kStartReduce;
  int slice = 0;
  int round = 0;
};

std::vector<Mark> marks_of(const Schedule& schedule) {
  const int every = schedule.request.capture_every_rounds;
  std::vector<Mark> marks;
  for (int index = 0; index < static_cast<int>(schedule.slices.size()); ++index) {
    const WindowSlice& slice = schedule.slices[index];
    const int last_round = schedule.rounds_in(slice) - 1;
    if (last_round < 0) continue;
    if (const auto round = schedule.provisional_round(slice.window)) {
      marks.push_back({OpKind::kProvisional, index, *round});
    }
    // A cut after a window's last round is the live checkpoint of the update that follows, so it needs no capture.
    for (int round = every - 1; every > 0 && round < last_round; round += every) {
      if (round + 1 >= schedule.rounds_before_cut(slice.window)) marks.push_back({OpKind::kCapture, index, round});
    }
    marks.push_back({slice.complete ? OpKind::kStartReduce : OpKind::kCapture, index, last_round});
  }
  return marks;
}

// Where in `ops` the last backward stands that belongs to a slice, to a round up to the given one, and to a stage;
// -1 if there is none.
class LastBackwards {
 public:
  LastBackwards(const Schedule& schedule, const std::vector<Op>& ops) : stages_(schedule.placement.stages()) {
    for (const WindowSlice& slice : schedule.slices) {
      last_.emplace_back(static_cast<std::size_t>(schedule.rounds_in(slice)) * stages_, -1);
    }
    for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
      const Op& op = ops[index];
      if (op.kind == OpKind::kBackward)
        last_[op.window - schedule.request.first_window][key(op.round, op.stage)] = index;
    }
    for (std::vector<int>& slice : last_) {
      for (std::size_t i = stages_; i < slice.size(); ++i) slice[i] = std::max(slice[i], slice[i - stages_]);
    }
  }

  int at(int slice, int round, int stage) const { return last_[slice][key(round, stage)]; }

 private:
  std::size_t key(int round, int stage) const { return static_cast<std::size_t>(round) * stages_ + stage; }

  std::size_t stages_;
  std::vector<std::vector<int>> last_;
};

// A collective, and how many of the device's other ops come before it.
struct Placed {
  int place = 0;
  Op op;
};

std::vector<Placed> collectives_of(const Schedule& schedule, int device, const std::vector<Op>& ops) {
  const LastBackwards last(schedule, ops);
  const bool captures_wait = !is_clockwork(schedule.request.kind);
  const auto waits_for_its_turn = [&](OpKind kind) {
    return kind == OpKind::kStartReduce || (kind == OpKind::kCapture && captures_wait);
  };
  const std::vector<int>& stages = schedule.placement.stages_on(device);
  std::vector<Placed> all;
  int earliest = 0;
  for (const Mark& mark : marks_of(schedule)) {
    const bool is_copy = mark.kind != OpKind::kStartReduce;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      const int own = last.at(mark.slice, mark.round, *stage) + 1;
      const bool waits = waits_for_its_turn(mark.kind);
      // A later turn of this device must not be put off by a copy that waits for none.
      if (mark.kind != OpKind::kProvisional) earliest = std::max(earliest, own);
      all.push_back({waits ? earliest : own,
                     {mark.kind, *stage, 0, is_copy ? mark.round : 0, schedule.slices[mark.slice].window}});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) { return a.place < b.place; });
  return all;
}

}  // namespace

std::vector<Op> with_collectives(const Schedule& schedule, int device, const std::vector<Op>& ops) {
  const std::vector<Placed> collectives = collectives_of(schedule, device, ops);
  std::vector<Op> result;
  result.reserve(ops.size() + collectives.size());
  int copied = 0;
  for (const Placed& collective : collectives) {
    result.insert(result.end(), ops.begin() + copied, ops.begin() + collective.place);
    copied = collective.place;
    result.push_back(collective.op);
  }
  result.insert(result.end(), ops.begin() + copied, ops.end());
  return result;
}

}  // namespace everstep::scheduler
