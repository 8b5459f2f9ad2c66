#pragma once

#include <chrono>
#include <cstring>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "tests/accelerator/fake_device.h"

namespace everstep::accelerator {

// The fake device of a test's process, which keeps mistakes for race_report(). LibTorch
// computes on one thread and without autograd, as in the trainer.
inline c10::Device prepared_device() {
  [[maybe_unused]] static const bool once = [] {
    at::set_num_threads(1);
    c10::GradMode::set_enabled(false);
    Options options;
    options.on_mistake = OnMistake::kRecord;
    options.jitter = std::chrono::microseconds(100);
    register_fake_accelerator(options);
    return true;
  }();
  return fake_device();
}

inline at::TensorOptions on_fake(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(type).device(prepared_device());
}

// Two NaNs are the same if their bits are; strides count, because what follows computes in their order.
inline bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  if (!one.defined() || !other.defined()) return one.defined() == other.defined();
  if (one.scalar_type() != other.scalar_type() || one.sizes() != other.sizes()) return false;
  if (one.numel() > 0 && one.strides() != other.strides()) return false;
  const at::Tensor left = one.cpu().contiguous();
  const at::Tensor right = other.cpu().contiguous();
  return left.numel() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace everstep::accelerator
