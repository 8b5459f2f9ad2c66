#include <algorithm>

#include "scheduler/orders/orders.h"

// Interleaved 1F1B (Narayanan et al., SC 2021): device g holds stages g, g + D, …, and runs its chunks in turn, D
// minibatches at a time. The order is made for whole rounds; minibatches that do not exist are left out of it.
namespace everstep::scheduler {
namespace {

// The i-th forward (or, mirrored, backward) of a device that runs `chunks` chunks over rounds of `depth` minibatches.
OrderStep step_of(int i, bool forward, int device, int depth, int chunks) {
  const int round = i / (depth * chunks);
  const int inside = i % (depth * chunks);
  const int turn = inside / depth;
  const int chunk = forward ? turn : chunks - 1 - turn;
  return {forward, round * depth + inside % depth, chunk * depth + device};
}

}  // namespace

OrderGenerator interleaved_generator(const Placement& placement) {
  return [&placement](const Segment& segment) {
    const int depth = placement.depth();
    const int chunks = placement.stages() / depth;
    const MinibatchNames names(segment);
    const int whole_rounds = (names.count() + depth - 1) / depth;
    const int total = whole_rounds * depth * chunks;
    DeviceOrders orders(depth);
    for (int device = 0; device < depth; ++device) {
      const auto emit = [&](int i, bool forward) {
        const OrderStep step = step_of(i, forward, device, depth, chunks);
        if (step.minibatch < names.count()) orders[device].push_back(names.op(step));
      };
      const int warm_up = std::min(total, 2 * (depth - 1 - device) + (chunks - 1) * depth);
      for (int i = 0; i < total + warm_up; ++i) {
        if (i < total) emit(i, true);
        if (i >= warm_up) emit(i - warm_up, false);
      }
    }
    return orders;
  };
}

}  // namespace everstep::scheduler
