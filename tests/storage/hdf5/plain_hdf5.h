#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <hdf5.h>

#include "storage/tensor_file.h"

namespace everstep::storage {

// A file that libhdf5 writes to disk in the usual way, with everything that find_tensors expects for spec(): tensor "w"
// of float32 (2, 3) and "group/v" of int64 (2). Tests change one thing before they ask for its bytes.
class PlainHdf5 final {
 public:
  PlainHdf5();
  ~PlainHdf5();
  PlainHdf5(const PlainHdf5&) = delete;
  PlainHdf5& operator=(const PlainHdf5&) = delete;

  static TensorFileSpec spec();
  static void write_number(hid_t object, const char* name, std::int64_t number);

  std::vector<std::byte> bytes() const;

  hid_t file_creation;
  hid_t file_access;
  hid_t dataset_creation;  // of "w"
  hid_t type;
  std::vector<hsize_t> shape = {2, 3};
  bool write = true;
  std::function<void(hid_t)> before_dataset = [](hid_t) {};
  std::function<void(hid_t)> finally = [](hid_t) {};
};

}  // namespace everstep::storage
