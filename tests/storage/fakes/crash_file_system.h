#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "storage/file_system.h"

namespace everstep::storage {

// What becomes of bytes that were written and never synced.
enum class UnsyncedBytes {
  kLost,       // the file ends where it was last synced: a new one is empty
  kKept,       // as after the death of the process alone
  kTruncated,  // it ends at some multiple of 4 KiB between the two
  kTorn,       // it has its full length, but any 4 KiB page may be zero
};

// What becomes of names that were made, changed or removed without sync_directory.
enum class UnsyncedNames {
  kLost,
  kKept,
  kSeeded,  // each operation for itself, so that a later one may be kept and an earlier one be lost
};

struct CrashPolicy {
  UnsyncedBytes bytes = UnsyncedBytes::kLost;
  UnsyncedNames names = UnsyncedNames::kLost;
  std::uint64_t seed = 0;
};

// Every combination; those that draw numbers once per seed below `seeds`.
std::vector<CrashPolicy> crash_policies(std::uint64_t seeds);

// Mistakes of the system. They may be changed at any time between calls.
struct FileFaults {
  // The process dies in the call that has this number (the first is 1): the call takes effect, as far as an unsynced
  // one does, but does not return success; it and every call after it, reads included, fail.
  std::optional<std::int64_t> crash_at_call;

  // So many bytes more may be written by all files together. The write that does not fit leaves what did.
  std::optional<std::uint64_t> bytes_until_full;

  // The sync with this number (the first is 1, of files and directories together) fails and loses what it should have
  // made durable: unsynced bytes are zero from now on, unsynced operations on names do not survive a crash. A second
  // sync of the same thing succeeds, which makes nothing better: whoever syncs again is lied to.
  std::optional<std::int64_t> failing_sync;

  bool read_only = false;            // whatever would change something fails
  std::set<std::string> unreadable;  // paths whose open() fails as if the disk had a bad spot
};

// A file system in memory that knows what a power cut would leave. The model:
//   - sync() makes the bytes of a file durable, not its name. sync_directory() makes names durable, not bytes.
//   - Operations on names that are not synced survive a crash or do not, in any combination and order. A rename is one
//     operation: the new name has the old content or the new one, and is never missing if it was there before.
//   - make_directories() is a call per directory made and one per sync.
//   - Calls that only read are not numbered.
// From any thread.
class CrashFileSystem final : public FileSystem {
 public:
  CrashFileSystem();
  ~CrashFileSystem() override;

  FileFaults faults;

  std::int64_t calls() const;  // that change or sync something, so far
  std::int64_t syncs() const;
  bool crashed() const;

  // What the next process finds after a power cut now. It has no faults, and all of it is durable.
  std::unique_ptr<CrashFileSystem> after_crash(const CrashPolicy& policy) const;

  // The same content, unsynced operations included, without its faults.
  std::unique_ptr<CrashFileSystem> copy() const;

  // What somebody else does behind the back of whoever uses this, durably and without a call being counted. The path
  // must exist.
  void damage(std::string_view path, std::size_t offset, std::byte flipped_bits);
  void replace(std::string_view path, std::span<const std::byte> bytes);
  void vanish(std::string_view path);  // with all below; "" is the root itself

  std::vector<std::byte> content(std::string_view path) const;  // must be a file
  std::vector<std::string> all_files() const;                   // paths, ascending

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override;
  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  Status make_directories(std::string_view path) override;
  Status sync_directory(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status remove_directory(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override;
  Result<std::unique_ptr<Lock>> lock(std::string_view path) override;  // makes no file, and is no call
  Result<std::uint64_t> free_bytes() const override;

 private:
  struct Node;
  struct NameChange;
  class Writer;
  class Reader;
  class HeldLock;
  using NodePointer = std::shared_ptr<Node>;
  struct Place {  // of something in the directory that holds it
    NodePointer directory;
    std::string name;
    NodePointer node;  // null: nothing of that name
  };

  Status allow_read(std::string_view path) const;
  Status allow_change(std::string_view path);
  Status finish_call(std::string_view path);
  Result<NodePointer> find(std::string_view path) const;
  Result<NodePointer> find_directory(std::string_view path) const;
  Result<Place> find_place(std::string_view path) const;
  Result<Place> find_file_place(std::string_view path) const;
  NodePointer existing(std::string_view path) const;
  Status change_name(std::string_view path, const NodePointer& directory, NameChange change);
  Status sync_node(std::string_view path, Node& node);
  static NodePointer survivor(const Node& node, const CrashPolicy& policy, std::uint64_t& draws);
  static NodePointer clone(const NodePointer& node, std::map<const Node*, NodePointer>& clones);

  mutable std::mutex mutex_;
  NodePointer root_;  // null: somebody deleted it
  std::int64_t calls_ = 0;
  std::int64_t syncs_ = 0;
  bool crashed_ = false;
  std::set<std::string> locked_;  // paths
};

}  // namespace everstep::storage
