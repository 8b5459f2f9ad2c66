#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/stack.h>

#include "tests/accelerator/accelerator.h"

namespace everstep::accelerator {

bool on_device(const at::Tensor& tensor);

// The same numbers as a tensor of the CPU that a kernel may compute with, for tensors on the device and in pinned
// memory. Keeps nothing alive, as a real kernel does not.
at::Tensor seen_by_kernel(const at::Tensor& tensor);

// The bytes that a kernel touches: exactly, or from the first to the last where they lie in too many pieces.
void add_accesses(const at::Tensor& tensor, bool writes, std::vector<Access>& accesses);

// Replaces each tensor of the stack from `begin` on, also in lists and options, by `change(tensor, argument number)`.
// Devices become the CPU.
using ChangeTensor = std::function<at::Tensor(const at::Tensor&, std::size_t)>;
void change_tensors(torch::jit::Stack& stack, std::size_t begin, const ChangeTensor& change);

// Calls it as a kernel is called, whatever thread it is: nothing is recorded for autograd.
void as_kernel(const std::function<void()>& function);

}  // namespace everstep::accelerator
