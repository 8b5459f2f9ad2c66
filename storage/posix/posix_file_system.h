#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "storage/file_system.h"

namespace everstep::storage {

// The directory `root` (made if it is missing and `create` is set) on a real file system. All calls go through a
// descriptor of the root, component by component, without following symbolic links; `root` itself may be reached
// through links.
Result<std::unique_ptr<FileSystem>> open_posix_file_system(const std::string& root, bool create);

}  // namespace everstep::storage
