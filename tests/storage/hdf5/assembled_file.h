#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/tensor_file.h"

namespace everstep::storage {

// The bytes of a tensor by a fixed rule, different for each tensor and place.
std::vector<std::byte> tensor_bytes(const TensorFileSpec& spec, std::size_t tensor);

// The whole file with these tensors. Checks on the way that no two parts of the layout overlap or leave the file.
std::vector<std::byte> assemble(const TensorFileSpec& spec, const TensorFileLayout& layout);

// lay_out and assemble.
std::vector<std::byte> make_tensor_file(const TensorFileSpec& spec);

// One tensor of each type, one of them in a group, and one scalar.
TensorFileSpec small_spec();

}  // namespace everstep::storage
