#pragma once

#include <functional>
#include <memory>
#include <string>

#include "storage/file_system.h"

namespace everstep::storage {

// Each of these stands between a catalog and its file system and makes one mistake that a hurried programmer might. The
// crash tests must notice every one of them.
using FaultyFileSystem = std::function<std::unique_ptr<FileSystem>(FileSystem&)>;

std::unique_ptr<FileSystem> without_fault(FileSystem& files);
std::unique_ptr<FileSystem> without_file_sync(FileSystem& files);
std::unique_ptr<FileSystem> without_directory_sync(FileSystem& files);
std::unique_ptr<FileSystem> syncing_files_after_head(FileSystem& files);
std::unique_ptr<FileSystem> removing_documents_last(FileSystem& files);
std::unique_ptr<FileSystem> overwriting(FileSystem& files);
std::unique_ptr<FileSystem> renaming_before_sync(FileSystem& files);
std::unique_ptr<FileSystem> syncing_again_after_failure(FileSystem& files);

}  // namespace everstep::storage
