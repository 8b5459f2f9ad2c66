#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/buffer.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/model_config.h"
#include "trainer/update/host_memory.h"

namespace everstep::trainer {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // decoupled; not on norms and biases
  double clip_norm = 1.0;     // of the global gradient; 0 = never

  bool operator==(const AdamOptions&) const = default;
};

// What every owner must know to take the same step.
struct StepInput {
  double learning_rate = 0;
  double clip_scale = 1;  // what the gradient is multiplied by
  std::int64_t step = 1;  // 1 for the first: bias correction
};

// AdamW on one owned stage. Keeps both moments, and under bf16 the fp32 master; under fp32 the weights are the master.
// One pass over memory per step. Same gradient, same bits on every x86-64 (LibTorch's gradients: one kind of CPU only).
class StageOptimizer {
 public:
  // `master` (fp32, one per element) is taken only under bf16, else it must be empty. All lies in `memory`, which must
  // outlive it.
  StageOptimizer(StageLayout layout, Precision precision, Accumulation accumulation, AdamOptions options, Buffer master,
                 DeviceMemory& memory = host_memory());

  // Per entry of the layout: the sum of squares of its gradient, in double precision and in an order that depends on
  // the parameter's size alone (kernels/ordered_sum.h). Not finite if the gradient is not.
  std::vector<Noted<double>> sums_of_squares(const Buffer& gradient) const;

  // Takes the step, writes `weights`, and leaves `gradient` zero.
  void step(const StepInput& input, const Buffer& gradient, const Buffer& weights);

  // What step() would make of the weights, in `provisional`; a weight for which that is no number stays as it is.
  // Changes nothing else, least of all the moments.
  void try_step(const StepInput& input, const Buffer& gradient, const Buffer& weights, const Buffer& provisional);

  // What a checkpoint keeps besides the weights. The bytes are the optimizer's own: whoever restores writes them.
  const Buffer& master() const { return master_; }  // empty under fp32
  const Buffer& first_moment() const { return first_moment_; }
  const Buffer& second_moment() const { return second_moment_; }

  std::int64_t state_bytes() const;

  const StageLayout& layout() const { return layout_; }

 private:
  StageLayout layout_;
  Precision precision_;
  Accumulation accumulation_;
  AdamOptions options_;
  DeviceMemory& memory_;
  Buffer master_;
  Buffer first_moment_;
  Buffer second_moment_;
};

}  // namespace everstep::trainer
