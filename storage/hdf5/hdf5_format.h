#pragma once

#include <memory>

#include "storage/tensor_file.h"

namespace everstep::storage {

// Tensor files as HDF5 1.10 that h5py and h5dump read: a contiguous dataset per tensor, the attributes on the root
// group.
std::unique_ptr<TensorFormat> make_hdf5_format();

}  // namespace everstep::storage
