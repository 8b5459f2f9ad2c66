#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/tensor_file.h"

namespace everstep::storage {

// TensorFormat::find_tensors. The caller has checked the expected spec.
Result<std::vector<std::uint64_t>> find_tensors_in_hdf5(std::span<const std::byte> file,
                                                        const TensorFileSpec& expected);

}  // namespace everstep::storage
