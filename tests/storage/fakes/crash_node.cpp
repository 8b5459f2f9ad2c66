#include "tests/storage/fakes/crash_node.h"

#include <algorithm>
#include <utility>

namespace everstep::storage {
namespace {

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

Status CrashFileSystem::allow_read(std::string_view path) const {
  if (crashed_) return refused(ErrorCode::kUnavailable, path, "the process is dead");
  return {};
}

Status CrashFileSystem::allow_change(std::string_view path) {
  EVERSTEP_TRY(allow_read(path));
  if (faults.read_only) return refused(ErrorCode::kUnavailable, path, "the file system is read-only");
  return {};
}

// Counts a call that took effect, and dies in it if its number is up.
Status CrashFileSystem::finish_call(std::string_view path) {
  ++calls_;
  crashed_ = faults.crash_at_call && calls_ >= *faults.crash_at_call;
  return allow_read(path);
}

Result<CrashFileSystem::NodePointer> CrashFileSystem::find(std::string_view path) const {
  EVERSTEP_TRY(allow_read(path));
  EVERSTEP_TRY(check_path(path));
  if (root_ == nullptr) return refused(ErrorCode::kNotFound, path, "the root directory is gone");
  NodePointer node = root_;
  for (std::size_t start = 0; start < path.size();) {
    if (!node->is_directory) return refused(ErrorCode::kDataLoss, path, "not below a directory");
    const std::size_t end = std::min(path.find('/', start), path.size());
    const auto entry = node->entries.find(std::string(path.substr(start, end - start)));
    if (entry == node->entries.end()) return refused(ErrorCode::kNotFound, path, "it is not there");
    node = entry->second;
    start = end + 1;
  }
  return node;
}

Result<CrashFileSystem::NodePointer> CrashFileSystem::find_directory(std::string_view path) const {
  auto node = find(path);
  if (node && !(*node)->is_directory) return refused(ErrorCode::kDataLoss, path, "it is no directory");
  return node;
}

Result<CrashFileSystem::Place> CrashFileSystem::find_place(std::string_view path) const {
  EVERSTEP_TRY(check_path(path));
  if (path.empty()) return refused(ErrorCode::kInvalidArgument, path, "this is the root");
  auto directory = find_directory(parent_of(path));
  if (!directory) return directory.error();
  Place place{*directory, std::string(name_of(path)), nullptr};
  if (const auto entry = place.directory->entries.find(place.name); entry != place.directory->entries.end()) {
    place.node = entry->second;
  }
  return place;
}

Result<CrashFileSystem::Place> CrashFileSystem::find_file_place(std::string_view path) const {
  auto place = find_place(path);
  if (!place) return place;
  if (place->node == nullptr) return refused(ErrorCode::kNotFound, path, "it is not there");
  if (place->node->is_directory) return refused(ErrorCode::kDataLoss, path, "it is no plain file");
  return place;
}

Status CrashFileSystem::change_name(std::string_view path, const NodePointer& directory, NameChange change) {
  change.apply(directory->entries);
  directory->unsynced.push_back(std::move(change));
  return finish_call(path);
}

Status CrashFileSystem::sync_node(std::string_view path, Node& node) {
  ++syncs_;
  EVERSTEP_TRY(finish_call(path));
  if (faults.failing_sync && syncs_ == *faults.failing_sync) {
    std::fill(node.bytes.begin() + static_cast<std::ptrdiff_t>(node.durable_size), node.bytes.end(), std::byte{0});
    node.unsynced.clear();
    return refused(ErrorCode::kUnavailable, path, "input/output error while syncing");
  }
  node.durable_size = node.bytes.size();
  for (const NameChange& change : node.unsynced) change.apply(node.durable_entries);
  node.unsynced.clear();
  return {};
}

}  // namespace everstep::storage
