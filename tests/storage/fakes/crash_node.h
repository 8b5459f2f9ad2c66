#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/storage/fakes/crash_file_system.h"

namespace everstep::storage {

// An error of this file system.
inline Error refused(ErrorCode code, std::string_view path, const char* why) {
  return {code, "'" + std::string(path) + "': " + why, "injected or found by the file system of the test"};
}

// One operation on names of a directory. Any subset of a directory's changes can be applied in order.
struct CrashFileSystem::NameChange {
  std::string removed;  // "" if none
  std::string added;    // "" if none
  NodePointer node;     // of both

  void apply(std::map<std::string, NodePointer>& entries) const {
    if (const auto old = entries.find(removed); old != entries.end() && old->second == node) entries.erase(old);
    if (!added.empty()) entries[added] = node;
  }
};

// A file or a directory, as running programs see it, with what of it is durable.
struct CrashFileSystem::Node {
  bool is_directory = false;

  std::vector<std::byte> bytes;
  std::size_t durable_size = 0;  // a file is written from front to back, so what is durable is a prefix

  std::map<std::string, NodePointer> entries;
  std::map<std::string, NodePointer> durable_entries;
  std::vector<NameChange> unsynced;
};

}  // namespace everstep::storage
