#pragma once

#include <memory>
#include <string>

#include "storage/tensor_file.h"

namespace everstep::storage {

// Tensor files as HDF5 1.10 that h5py and h5dump read: a contiguous dataset per tensor, the attributes on the root
// group.
std::unique_ptr<TensorFormat> make_hdf5_format();

// "1.10.8": of the library that writes them.
std::string hdf5_version();

}  // namespace everstep::storage
