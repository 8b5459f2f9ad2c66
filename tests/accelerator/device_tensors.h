#pragma once

#include <cstddef>

#include <c10/core/Storage.h>

namespace everstep::accelerator {

// Teaches LibTorch to make tensors on the fake device, to see them in other shapes and to copy them between host and
// device: what no kernel of the CPU can stand for.
void register_device_tensors();

// Keeps what fits; on the current stream.
void resize_storage(const c10::Storage& storage, std::size_t bytes);

}  // namespace everstep::accelerator
