#pragma once

#include <memory>

#include "storage/tensor_file.h"

namespace everstep::storage {

// A tensor file in the simplest form: a line that spells the spec, then the tensors one after the other.
std::unique_ptr<TensorFormat> make_flat_format();

}  // namespace everstep::storage
