#pragma once

#include <chrono>
#include <memory>

#include "trainer/model/data_source.h"
#include "trainer/model/stage_compute.h"

namespace everstep::trainer {

// How long a stage pretends to compute.
struct EmulatedTimes {
  std::chrono::nanoseconds forward{};
  std::chrono::nanoseconds backward{};  // without the next
  std::chrono::nanoseconds weights{};   // the gradients of the weights

  bool operator==(const EmulatedTimes&) const = default;
};

// A device that waits instead of computing, so that deep pipelines can be measured on few cores. Tensors of the right
// size, all zero, go to the neighbours; gradients stay as they are, and the loss is 0. It looks at no data.
std::unique_ptr<StageCompute> make_emulated_stage(const StageRequest& request, EmulatedTimes times);

// What emulated stages train on: minibatches without tokens, none of them for validation.
std::unique_ptr<DataSource> make_emulated_data();

}  // namespace everstep::trainer
