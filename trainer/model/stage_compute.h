#pragma once

#include <array>
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
};

struct StageRequest {
  ModelConfig model;
  StageLayout layout;
  ChunkMemory memory;
  Accumulation accumulation = Accumulation::kFloat;
  std::int64_t window = 1;  // M: each minibatch's loss counts 1/M
  const DataSource* data = nullptr;
  DeviceMemory* device = nullptr;  // where `memory` lies; nothing: on the host
};

// Runs one stage on one device. A backward uses the weights that are in memory then, not those of its forward: that is
// AMDP. Whatever is kept for the backward belongs to the implementation.
class StageCompute {
 public:
  struct Output {
    Buffer tensor;           // for the next stage, where the chunk's memory is; empty at the last one
    Noted<double> loss = 0;  // at the last stage: of this minibatch, not divided by M
  };

  virtual ~StageCompute() = default;

  // `input` comes from the stage before, empty at the first one; it is kept until the backward.
  virtual Result<Output> forward(Position position, Buffer input) = 0;

  // Adds the minibatch's gradient to `memory.gradients[parity]`, each parameter once. `output_gradient` comes from the
  // stage after, empty at the last one. Returns the gradient of the input, empty at the first stage. In fixed point a
  // value that is not finite or too large leaves the sums undefined until they are zeroed: see take_overflow().
  virtual Result<Buffer> backward(Position position, Buffer output_gradient, int parity) = 0;

  // Forward only, without dropout, of minibatch `index` of the validation split; keeps nothing.
  virtual Result<Output> evaluate(std::int64_t index, Buffer input) = 0;

  // Whether a gradient added to that parity since the last call could not be represented; resets it.
  virtual Noted<bool> take_overflow(int parity) = 0;
};

}  // namespace everstep::trainer
