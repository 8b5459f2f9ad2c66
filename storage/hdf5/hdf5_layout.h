#pragma once

#include "storage/tensor_file.h"

namespace everstep::storage {

// Lets libhdf5 write the metadata of a file whose tensors are never written: memory for the metadata only, no input or
// output, the same bytes for the same spec. The caller has checked the spec.
Result<TensorFileLayout> lay_out_with_hdf5(const TensorFileSpec& spec);

}  // namespace everstep::storage
