#pragma once

#include <memory>

#include "trainer/model/stage_compute.h"
#include "trainer/torch/block.h"

namespace everstep::trainer {

// Sums up the gradients of one stage in one flat buffer, as its layout says. A GradientSink speaks of one block's
// parameters: select the block first.
class StageGradients : public GradientSink {
 public:
  // The block whose parameters stand at `first_entry` and after in the layout.
  void select_block(std::size_t first_entry) { first_entry_ = first_entry; }

  // Whether a gradient could not be represented since the last call; resets it.
  virtual Noted<bool> take_overflow() = 0;

  // Notes from now on in `flag` what take_overflow() would tell, and returns where that was noted so far. Undefined: a
  // new flag that is not set. What is added before its turn to tell is noted apart with this, and count_overflow()
  // tells it later. Where nothing is noted, flags are undefined.
  virtual at::Tensor exchange_overflow(at::Tensor flag) = 0;
  virtual void count_overflow(const at::Tensor& flag) = 0;

 protected:
  std::size_t entry_of(int parameter) const { return first_entry_ + static_cast<std::size_t>(parameter); }

 private:
  std::size_t first_entry_ = 0;
};

// Into the request's gradients of that parity.
std::unique_ptr<StageGradients> make_stage_gradients(const StageRequest& request, int parity);

// Views of a stage's parameters in a flat buffer of elements of this type, in the order of the layout.
Tensors parameter_views(const StageLayout& layout, const Buffer& buffer, at::ScalarType type);

}  // namespace everstep::trainer
