#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::storage {

// The one seam between checkpoints and the operating system. A file is written once, from front to back, under a name
// that did not exist; nothing is ever overwritten in place. What was not synced may be lost, kept or torn by a power
// cut, in any order: a file's bytes by sync() of the file, its name by sync_directory() of the directory it is in.
//
// All errors name the path. kNotFound: it is not there. kUnavailable: the system refused (full disk, I/O error,
// permissions); the hint says what to do. kInvalidArgument: the path itself is refused, is taken, or has something in
// it that must go first. kDataLoss: something else is there than the plain file or directory that was asked for (a
// symbolic link, a device).

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes without syncing; what failed on the way does not matter any more

  // Appends all of the bytes, or fails; after a failure the file is of no use.
  virtual Status write(std::span<const std::byte> bytes) = 0;

  // Returns when bytes and size are durable. Call it once: a system that failed to sync has forgotten which pages were
  // dirty, and a second call would lie.
  virtual Status sync() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // As it was when the file was opened.
  virtual std::uint64_t size() const = 0;

  // Fills `bytes` from `offset` on; fewer bytes than asked for are an error (kDataLoss). From any thread.
  virtual Status read(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

// Held until it is destroyed or its process ends.
class Lock {
 public:
  virtual ~Lock() = default;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;

  bool operator==(const DirectoryEntry&) const = default;
};

// Everything below one root directory. Paths are relative to it: components of letters, digits, '.', '-' and '_' with
// '/' between, none of them "." or "..", so no path leaves the root; a symbolic link on the way is refused, never
// followed. "" is the root itself. Different files may be used from different threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A new file that only its owner may read. Fails if there is anything of that name.
  virtual Result<std::unique_ptr<WritableFile>> create(std::string_view path) = 0;

  // Plain files only.
  virtual Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const = 0;

  // Makes the directory and those above it, as far as they are missing. All their names are durable then, whoever made
  // them.
  virtual Status make_directories(std::string_view path) = 0;

  // Returns when all names made, changed or removed in that directory are durable.
  virtual Status sync_directory(std::string_view path) = 0;

  // Both in one directory; replaces what was there.
  virtual Status rename(std::string_view from, std::string_view to) = 0;

  virtual Status remove(std::string_view path) = 0;            // of a file
  virtual Status remove_directory(std::string_view path) = 0;  // of an empty directory

  // Files and directories, by name ascending; other kinds of entries are left out.
  virtual Result<std::vector<DirectoryEntry>> list(std::string_view path) const = 0;

  // Never waits: while anyone else holds a lock of that path, in this process or another, it is kUnavailable. The file
  // that may stay there afterwards means nothing.
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view path) = 0;

  virtual Result<std::uint64_t> free_bytes() const = 0;
};

// Refuses what is no path in the sense above.
Status check_path(std::string_view path);

// "a/b" of "a" and "b"; either may be "".
std::string join_path(std::string_view directory, std::string_view name);

// The whole file if it has at most `limit` bytes (else kInvalidArgument).
Result<std::string> read_text(const FileSystem& files, std::string_view path, std::size_t limit);

// Creates a file, writes all of `text` and syncs it. Its name is durable only after sync_directory.
Status write_text(FileSystem& files, std::string_view path, std::string_view text);

}  // namespace everstep::storage
