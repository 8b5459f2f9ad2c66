#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/model/data_source.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

// The memory of one chunk (a stage replica on one device), flat as its StageLayout says. The loop owns it: it sums and
// sends gradients and overwrites weights between two ops, whatever forwards are still waiting for their backward.
struct ChunkMemory {
  Buffer weights;                   // layout.elements of the model's precision
  std::array<Buffer, 2> gradients;  // by window parity: layout.elements of float or std::int64_t; may be the same bytes
  Buffer provisional{};             // as `weights`: what the next window may run on until its update; empty: never
};

// Which weights of a chunk its passes read.
enum class WeightSet : std::uint8_t { kWeights, kProvisional };

struct StageRequest {
  ModelConfig model;
  StageLayout layout;
  ChunkMemory memory;
  Accumulation accumulation = Accumulation::kFloat;
  std::int64_t window = 1;  // M: each minibatch's loss counts 1/M
  const DataSource* data = nullptr;
  DeviceMemory* device = nullptr;  // where `memory` lies; host_memory() or nothing: on the host
};

// Runs one stage on one device. A backward has two halves: the stage before waits for the first one, nobody for the
// second one until a sum of gradients is read. The first half uses the weights that are in memory then, not those of
// its forward: that is AMDP. The second half uses no weights, so it may run after an update. Whatever is kept between
// the three belongs to the implementation.
class StageCompute {
 public:
  struct Output {
    Buffer tensor;           // for the next stage, where the chunk's memory is; empty at the last one
    Noted<double> loss = 0;  // at the last stage: of this minibatch, not divided by M
  };

  virtual ~StageCompute() = default;

  // From now on forwards and backward_input() read these; at first they read kWeights. A minibatch may go forward on
  // the one and backward on the other. Never kProvisional where the chunk's memory has none.
  virtual void select_weights(WeightSet set) = 0;

  // `input` comes from the stage before, empty at the first one; it is kept until the backward.
  virtual Result<Output> forward(Position position, Buffer input) = 0;

  // Returns the gradient of the input, empty at the first stage. `output_gradient` comes from the stage after, empty at
  // the last one. A part of the weights' gradients may be added here already, where keeping what it is made of would
  // take too much memory; it goes to `memory.gradients[parity]`.
  virtual Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) = 0;

  // Adds the rest of the minibatch's gradient to `memory.gradients[parity]`, so that each parameter got its own once.
  // Follows backward_input() of the same position and parity, at any time and exactly once. Sums have the same bits if
  // both halves keep the same order of minibatches, whatever lies between them. In fixed point a value that is not
  // finite or too large leaves the sums undefined until they are zeroed: see take_overflow().
  virtual Status backward_weights(Position position, int parity) = 0;

  // Forward only, without dropout, of minibatch `index` of the validation split; keeps nothing.
  virtual Result<Output> evaluate(std::int64_t index, Buffer input) = 0;

  // Whether a gradient that could not be represented was added to that parity by the minibatches whose
  // backward_weights() came since the last call; resets it.
  virtual Noted<bool> take_overflow(int parity) = 0;
};

}  // namespace everstep::trainer
