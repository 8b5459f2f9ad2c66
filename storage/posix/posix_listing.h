#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "storage/file_system.h"
#include "storage/posix/posix_file.h"

namespace everstep::storage {

// Files and directories in an open directory, by name ascending. `path` is for messages.
Result<std::vector<DirectoryEntry>> list_entries(const Descriptor& directory, const std::string& path);

}  // namespace everstep::storage
