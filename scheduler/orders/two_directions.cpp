#include "scheduler/orders/orders.h"

// Two pipelines in opposite directions (as Chimera has) for the even depths that AMDP's placement does not fit. Each
// pipeline keeps about half the depth in flight, so that both together fill a device.
namespace everstep::scheduler {

OrderGenerator two_directions_generator(const Placement& placement) {
  return [&placement](const Segment& segment) {
    const int depth = placement.depth();
    const MinibatchNames names(segment);
    DeviceOrders orders(depth);
    const auto steps = first_come_order(placement, names.count(), depth / 2 + 1);
    for (int device = 0; device < depth; ++device) {
      for (const OrderStep& step : steps[device]) orders[device].push_back(names.op(step));
    }
    return orders;
  };
}

}  // namespace everstep::scheduler
