#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "scheduler/orders/orders.h"

// One round of D minibatches has one static order per device, reused in every round. Rounds are spliced so that the
// bubble at a round's end holds forwards of the next: an edge device runs its `preload` next stage-0 forwards before
// its last backward of this round (the *tail*). The update of a window stands in the first round of the next one, after
// (nearly) all forwards and before (nearly) all backwards, where the pipeline has its bubble anyway.
namespace everstep::scheduler {
namespace {

std::vector<std::vector<OrderStep>> full_round(const Placement& placement) {
  return first_come_order(placement, placement.depth(), placement.depth());
}

// One device's steps of a round, cut where the splice and the update need it.
struct DeviceRound {
  std::vector<OrderStep> head;  // stage-0 forwards, edge devices only
  std::vector<OrderStep> body;
  std::vector<OrderStep> tail;  // the last backward, edge devices only
};

DeviceRound cut_round(const std::vector<OrderStep>& order, bool edge) {
  if (!edge) return {{}, order, {}};
  const auto head_end = order.begin() + 2;
  const auto tail_begin = order.end() - 1;
  return {{order.begin(), head_end}, {head_end, tail_begin}, {tail_begin, order.end()}};
}

class DeviceStream {
 public:
  DeviceStream(const Placement& placement, int device, const std::vector<OrderStep>& order, int preload)
      : preload_(placement.depth() == 2 ? 1 : preload),
        update_after_backward_(placement.stages_on(device).back() == placement.stages() - 1),
        round_(cut_round(order, placement.is_edge(device))) {}

  // Appends one round with its first `minibatches` minibatches. `update` is applied in this round if given.
  void append_round(std::int64_t window, int round, int minibatches, const Op* update) {
    const auto emit = [&](const OrderStep& step) {
      if (step.minibatch >= minibatches) return false;
      ops_.push_back({step.forward ? OpKind::kForward : OpKind::kBackward, step.stage, step.minibatch, round, window});
      return true;
    };
    const auto preloaded = round_.head.begin() + std::min<std::ptrdiff_t>(preload_, std::ssize(round_.head));
    std::for_each(round_.head.begin(), preloaded, emit);
    append_tail();
    std::for_each(preloaded, round_.head.end(), emit);
    for (const OrderStep& step : round_.body) {
      // A last stage's first backward follows its forward directly. Updating only after it keeps the other devices from
      // stalling, at the price of a second gradient buffer for that one chunk.
      const bool first_backward = update != nullptr && !step.forward;
      if (first_backward && !update_after_backward_) ops_.push_back(*std::exchange(update, nullptr));
      emit(step);
      if (first_backward && update_after_backward_) ops_.push_back(*std::exchange(update, nullptr));
    }
    EVERSTEP_CHECK(update == nullptr, "an update needs a full round to stand in");
    for (const OrderStep& step : round_.tail) {
      if (emit(step)) {
        tail_.push_back(ops_.back());
        ops_.pop_back();
      }
    }
  }

  // Before the first op of the next window, or where it would stand.
  void append_step(const Op& step) { ops_.push_back(step); }

  // Appends what the last round left for the next one: the end of a segment, or the splice.
  void append_tail() {
    ops_.insert(ops_.end(), tail_.begin(), tail_.end());
    tail_.clear();
  }

  std::vector<Op> take() { return std::move(ops_); }

 private:
  int preload_;
  bool update_after_backward_;
  DeviceRound round_;
  std::vector<Op> tail_;
  std::vector<Op> ops_;
};

}  // namespace

OrderGenerator amdp_generator(const Placement& placement, int preload) {
  return [&placement, preload, round_order = full_round(placement)](const Segment& segment) {
    DeviceOrders orders;
    for (int device = 0; device < placement.depth(); ++device) {
      DeviceStream stream(placement, device, round_order[device], preload);
      for (const WindowWork& work : segment) {
        const Op update = update_of(work.window - 1);
        const bool follows_window = work.window != segment.front().window;
        for (int round = 0; round < static_cast<int>(work.rounds.size()); ++round) {
          stream.append_round(work.window, round, work.rounds[round], follows_window && round == 0 ? &update : nullptr);
        }
        if (work.step) stream.append_step(*work.step);
      }
      stream.append_tail();
      orders.push_back(stream.take());
    }
    return orders;
  };
}

}  // namespace everstep::scheduler
