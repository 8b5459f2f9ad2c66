#pragma once

#include <ATen/ATen.h>

#include "trainer/model/buffer.h"

namespace everstep::trainer {

// The bytes of a tensor, made dense if it is not, which live as long as the buffer.
Buffer to_buffer(const at::Tensor& tensor);

// A dense tensor over the bytes of a buffer, which live as long as it. What is not ordinary memory of the host must
// come from to_buffer() or from a TorchDeviceMemory.
at::Tensor to_tensor(const Buffer& buffer, at::IntArrayRef shape, at::ScalarType type);

// The tensor that a buffer of a device or of pinned memory is a part of: what LibTorch's allocators know.
const at::Tensor& owner_of(const Buffer& buffer);

}  // namespace everstep::trainer
