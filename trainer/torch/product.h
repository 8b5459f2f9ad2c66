#pragma once

#include <ATen/ATen.h>

namespace everstep::trainer {

// left · right, or with a bias for each column bias + left · right. Either factor may be transposed. In fp32 on a CPU
// that has_wide_product() with that, and with LibTorch everywhere else.
at::Tensor product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias = {});

}  // namespace everstep::trainer
