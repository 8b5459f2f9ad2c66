#include "trainer/emulated/slowed_stage.h"

#include <chrono>
#include <utility>

#include "trainer/emulated/wait_exactly.h"
#include "trainer/model/wrapped_stage.h"

namespace everstep::trainer {

std::unique_ptr<StageCompute> make_slowed_stage(std::unique_ptr<StageCompute> stage, double factor,
                                                DeviceMemory* device) {
  return wrap_ops(std::move(stage), [factor, device](StageOp, Position, const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (device != nullptr) wait_for(device->mark());
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    wait_exactly(std::chrono::duration_cast<std::chrono::nanoseconds>(took * (factor - 1)));
  });
}

}  // namespace everstep::trainer
