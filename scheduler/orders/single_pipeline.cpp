#include <algorithm>

#include "scheduler/orders/orders.h"

// The schedules with one pipeline: 1F1B, GPipe and PipeDream-2BW, whose orders differ only in how many forwards a
// device runs before its first backward.
namespace everstep::scheduler {
namespace {

// `warm_up` forwards, then one forward and one backward in turn, then the backwards that are left.
std::vector<Op> in_turn(const MinibatchNames& names, int stage, int warm_up) {
  std::vector<Op> ops;
  for (int i = 0; i < names.count() + warm_up; ++i) {
    if (i < names.count()) ops.push_back(names.op({true, i, stage}));
    if (i >= warm_up) ops.push_back(names.op({false, i - warm_up, stage}));
  }
  return ops;
}

// Puts the update of each window but the last behind the window's last backward (at the front, if it has none here).
std::vector<Op> with_local_updates(const std::vector<Op>& ops, const Segment& segment) {
  std::vector<Op> result;
  auto window = segment.begin();
  int backwards_left = window->minibatches();
  const auto update_finished_windows = [&] {
    while (backwards_left == 0 && std::next(window) != segment.end()) {
      result.push_back(update_of(window->window));
      ++window;
      backwards_left = window->minibatches();
    }
  };
  update_finished_windows();
  for (const Op& op : ops) {
    result.push_back(op);
    if (op.kind == OpKind::kBackward) --backwards_left;
    update_finished_windows();
  }
  return result;
}

}  // namespace

OrderGenerator one_f_one_b_generator(const Placement& placement) {
  return [&placement](const Segment& segment) {
    const MinibatchNames names(segment);
    DeviceOrders orders;
    for (int stage = 0; stage < placement.stages(); ++stage) {
      orders.push_back(in_turn(names, stage, placement.stages() - 1 - stage));
    }
    return orders;
  };
}

OrderGenerator gpipe_generator(const Placement& placement) {
  return [&placement](const Segment& segment) {
    const MinibatchNames names(segment);
    DeviceOrders orders;
    for (int stage = 0; stage < placement.stages(); ++stage) {
      orders.push_back(in_turn(names, stage, std::max(0, names.count() - 1)));
    }
    return orders;
  };
}

OrderGenerator pipedream_2bw_generator(const Placement& placement) {
  return [one_f_one_b = one_f_one_b_generator(placement)](const Segment& segment) {
    DeviceOrders orders = one_f_one_b(segment);
    for (std::vector<Op>& ops : orders) ops = with_local_updates(ops, segment);
    return orders;
  };
}

}  // namespace everstep::scheduler
