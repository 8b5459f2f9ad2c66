#pragma once

#include <vector>

#include "base/result.h"
#include "storage/manifest.h"

namespace everstep::storage {

// A tensor that somebody needs to go on, under whatever plan.
struct WantedTensor {
  int block = 0;
  StateKind kind = StateKind::kWeights;
  TensorSpec tensor;

  bool operator==(const WantedTensor&) const = default;
};

// What to read from one file, in the order in which it lies there.
struct FileFetch {
  struct Part {
    int tensor = 0;  // index in the file's record
    int wanted = 0;  // index in the list of wanted tensors
    bool operator==(const Part&) const = default;
  };
  FileRecord file;
  std::vector<Part> parts;

  bool operator==(const FileFetch&) const = default;
};

// Which files of a checkpoint to read for the wanted tensors: state is stored by block and global name, so another
// depth, pipeline count or width is only another list of wanted tensors. Each file appears once; a tensor may be wanted
// more than once. kInvalidArgument, naming the tensor, if the checkpoint has none of that name, type and shape.
Result<std::vector<FileFetch>> reshard(const Manifest& manifest, const std::vector<WantedTensor>& wanted);

}  // namespace everstep::storage
