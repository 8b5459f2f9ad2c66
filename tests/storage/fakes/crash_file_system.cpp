#include "tests/storage/fakes/crash_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "tests/storage/fakes/crash_node.h"

namespace everstep::storage {

class CrashFileSystem::Writer final : public WritableFile {
 public:
  Writer(CrashFileSystem& files, NodePointer node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}

  Status write(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(files_.mutex_);
    EVERSTEP_TRY(files_.allow_change(path_));
    auto& room = files_.faults.bytes_until_full;
    const std::size_t fitting =
        room ? static_cast<std::size_t>(std::min<std::uint64_t>(*room, bytes.size())) : bytes.size();
    const auto part = bytes.first(fitting);
    node_->bytes.insert(node_->bytes.end(), part.begin(), part.end());
    if (room) *room -= fitting;
    EVERSTEP_TRY(files_.finish_call(path_));
    if (fitting < bytes.size()) return refused(ErrorCode::kUnavailable, path_, "no space left on the device");
    return {};
  }

  Status sync() override {
    const std::lock_guard lock(files_.mutex_);
    EVERSTEP_TRY(files_.allow_change(path_));
    return files_.sync_node(path_, *node_);
  }

 private:
  CrashFileSystem& files_;
  NodePointer node_;
  std::string path_;
};

class CrashFileSystem::Reader final : public ReadableFile {
 public:
  Reader(const CrashFileSystem& files, NodePointer node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)), size_(node_->bytes.size()) {}

  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    const std::lock_guard lock(files_.mutex_);
    EVERSTEP_TRY(files_.allow_read(path_));
    const std::size_t size = node_->bytes.size();
    if (offset > size || bytes.size() > size - offset) {
      return refused(ErrorCode::kDataLoss, path_, "it is shorter than it should be");
    }
    if (!bytes.empty()) std::memcpy(bytes.data(), node_->bytes.data() + offset, bytes.size());
    return {};
  }

 private:
  const CrashFileSystem& files_;
  NodePointer node_;
  std::string path_;
  std::uint64_t size_;
};

class CrashFileSystem::HeldLock final : public Lock {
 public:
  HeldLock(CrashFileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() override {
    const std::lock_guard lock(files_.mutex_);
    files_.locked_.erase(path_);
  }

 private:
  CrashFileSystem& files_;
  std::string path_;
};

CrashFileSystem::CrashFileSystem() : root_(std::make_shared<Node>()) { root_->is_directory = true; }
CrashFileSystem::~CrashFileSystem() = default;

std::int64_t CrashFileSystem::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::int64_t CrashFileSystem::syncs() const {
  const std::lock_guard lock(mutex_);
  return syncs_;
}

bool CrashFileSystem::crashed() const {
  const std::lock_guard lock(mutex_);
  return crashed_;
}

Result<std::unique_ptr<WritableFile>> CrashFileSystem::create(std::string_view path) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(path));
  const auto place = find_place(path);
  if (!place) return place.error();
  if (place->node != nullptr) return refused(ErrorCode::kInvalidArgument, path, "it exists already");
  auto node = std::make_shared<Node>();
  EVERSTEP_TRY(change_name(path, place->directory, {"", place->name, node}));
  return {std::make_unique<Writer>(*this, std::move(node), std::string(path))};
}

Result<std::unique_ptr<ReadableFile>> CrashFileSystem::open(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  if (faults.unreadable.count(std::string(path)) != 0) {
    return refused(ErrorCode::kUnavailable, path, "input/output error while opening");
  }
  auto node = find(path);
  if (!node) return node.error();
  if ((*node)->is_directory) return refused(ErrorCode::kDataLoss, path, "it is no plain file");
  return {std::make_unique<Reader>(*this, std::move(*node), std::string(path))};
}

Status CrashFileSystem::make_directories(std::string_view path) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(path));
  EVERSTEP_TRY(check_path(path));
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const auto place = find_place(path.substr(0, end));
    if (!place) return place.error();
    if (place->node == nullptr) {
      auto made = std::make_shared<Node>();
      made->is_directory = true;
      EVERSTEP_TRY(change_name(path, place->directory, {"", place->name, std::move(made)}));
    } else if (!place->node->is_directory) {
      return refused(ErrorCode::kDataLoss, path, "something else than a directory is in its place");
    }
    EVERSTEP_TRY(sync_node(path, *place->directory));
  }
  return find_directory(path).ok() ? Status() : find_directory(path).error();
}

Status CrashFileSystem::sync_directory(std::string_view path) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(path));
  const auto node = find_directory(path);
  if (!node) return node.error();
  return sync_node(path, **node);
}

Status CrashFileSystem::rename(std::string_view from, std::string_view to) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(from));
  const auto source = find_file_place(from);
  if (!source) return source.error();
  const auto target = find_place(to);
  if (!target) return target.error();
  if (source->directory != target->directory) {
    return refused(ErrorCode::kInvalidArgument, to, "a file stays in its directory");
  }
  if (target->node != nullptr && target->node->is_directory) {
    return refused(ErrorCode::kDataLoss, to, "it is no plain file");
  }
  return change_name(from, source->directory, {source->name, target->name, source->node});
}

Status CrashFileSystem::remove(std::string_view path) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(path));
  const auto place = find_file_place(path);
  if (!place) return place.error();
  return change_name(path, place->directory, {place->name, "", place->node});
}

Status CrashFileSystem::remove_directory(std::string_view path) {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_change(path));
  const auto place = find_place(path);
  if (!place) return place.error();
  if (place->node == nullptr) return refused(ErrorCode::kNotFound, path, "it is not there");
  if (!place->node->is_directory) return refused(ErrorCode::kDataLoss, path, "it is no directory");
  if (!place->node->entries.empty()) return refused(ErrorCode::kInvalidArgument, path, "it is not empty");
  return change_name(path, place->directory, {place->name, "", place->node});
}

Result<std::vector<DirectoryEntry>> CrashFileSystem::list(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  const auto node = find_directory(path);
  if (!node) return node.error();
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, entry] : (*node)->entries) entries.push_back({name, entry->is_directory});
  return entries;
}

Result<std::unique_ptr<Lock>> CrashFileSystem::lock(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const auto place = find_place(path);
  if (!place) return place.error();
  if (place->node != nullptr && place->node->is_directory) {
    return refused(ErrorCode::kDataLoss, path, "it is no plain file");
  }
  if (!locked_.insert(std::string(path)).second) return refused(ErrorCode::kUnavailable, path, "it is in use");
  return {std::make_unique<HeldLock>(*this, std::string(path))};
}

Result<std::uint64_t> CrashFileSystem::free_bytes() const {
  const std::lock_guard lock(mutex_);
  EVERSTEP_TRY(allow_read(""));
  return faults.bytes_until_full.value_or(std::uint64_t{1} << 40);
}

}  // namespace everstep::storage
