#pragma once

#include "trainer/torch/block.h"

namespace everstep::trainer {

// What each block computes, written down plainly for autograd: no fused kernels, one dropout number at a time. Works in
// the precision of what it is given.
at::Tensor reference_forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call);

}  // namespace everstep::trainer
