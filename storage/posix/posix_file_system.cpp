#include "storage/posix/posix_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "storage/posix/posix_error.h"
#include "storage/posix/posix_file.h"
#include "storage/posix/posix_listing.h"

namespace everstep::storage {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kOwnersFile = 0600;
constexpr mode_t kOwnersDirectory = 0700;

// A name in a directory that is open: from here on nobody can put a link in the way.
struct Place {
  Descriptor directory;
  std::string name;
};

class PosixFileSystem final : public FileSystem {
 public:
  PosixFileSystem(Descriptor root, std::string root_path) : root_(std::move(root)), root_path_(std::move(root_path)) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    const auto place = find_place(path);
    if (!place) return place.error();
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    Descriptor file(
        uninterrupted([&] { return ::openat(place->directory.number(), place->name.c_str(), kFlags, kOwnersFile); }));
    if (!file.is_open()) return failed("create", path);
    return make_writable_file(std::move(file), full(path));
  }

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    const auto place = find_place(path);
    if (!place) return place.error();
    constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // a pipe must not block us
    Descriptor file(uninterrupted([&] { return ::openat(place->directory.number(), place->name.c_str(), kFlags); }));
    if (!file.is_open()) return failed("open", path);
    return make_readable_file(std::move(file), full(path));
  }

  Status make_directories(std::string_view path) override {
    EVERSTEP_TRY(check_path(path));
    auto directory = open_root();
    if (!directory) return directory.error();
    for (std::size_t start = 0; start < path.size();) {
      const std::size_t end = std::min(path.find('/', start), path.size());
      const std::string name(path.substr(start, end - start));
      const auto here = path.substr(0, end);
      if (::mkdirat(directory->number(), name.c_str(), kOwnersDirectory) != 0 && errno != EEXIST) {
        return failed("make the directory", here);
      }
      // Also if it was there: whoever made it may not have come this far.
      EVERSTEP_TRY(sync(*directory, here));
      auto next = step_into(*directory, name, here);
      if (!next) return next.error();
      *directory = std::move(*next);
      start = end + 1;
    }
    return {};
  }

  Status sync_directory(std::string_view path) override {
    const auto directory = open_directory(path);
    if (!directory) return directory.error();
    return sync(*directory, path);
  }

  Status rename(std::string_view from, std::string_view to) override {
    const auto source = find_plain_file(from);
    if (!source) return source.error();
    const auto target = split(to);
    if (!target) return target.error();
    if (target->first != split(from)->first) {
      return invalid_argument("cannot rename '" + full(from) + "' to '" + full(to) +
                              "': a file stays in its directory");
    }
    const int directory = source->directory.number();
    if (::renameat(directory, source->name.c_str(), directory, std::string(target->second).c_str()) != 0) {
      return failed("rename a file to", to);
    }
    return {};
  }

  Status remove(std::string_view path) override {
    const auto place = find_plain_file(path);
    if (!place) return place.error();
    if (::unlinkat(place->directory.number(), place->name.c_str(), 0) != 0) return failed("remove", path);
    return {};
  }

  Status remove_directory(std::string_view path) override {
    const auto place = find_place(path);
    if (!place) return place.error();
    if (::unlinkat(place->directory.number(), place->name.c_str(), AT_REMOVEDIR) != 0) {
      return failed("remove the directory", path);
    }
    return {};
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    const auto directory = open_directory(path);
    if (!directory) return directory.error();
    return list_entries(*directory, full(path));
  }

  Result<std::unique_ptr<Lock>> lock(std::string_view path) override {
    const auto place = find_place(path);
    if (!place) return place.error();
    constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    Descriptor file(
        uninterrupted([&] { return ::openat(place->directory.number(), place->name.c_str(), kFlags, kOwnersFile); }));
    if (!file.is_open()) return failed("lock", path);
    return make_lock(std::move(file), full(path));
  }

  Result<std::uint64_t> free_bytes() const override {
    struct statvfs information {};
    if (::fstatvfs(root_.number(), &information) != 0) return failed("examine", "");
    return std::uint64_t{information.f_bavail} * information.f_frsize;
  }

 private:
  using Split = std::pair<std::string_view, std::string_view>;

  std::string full(std::string_view path) const { return join_path(root_path_, path); }
  Error failed(const char* action, std::string_view path) const { return system_error(action, full(path), errno); }

  static Result<Split> split(std::string_view path) {
    EVERSTEP_TRY(check_path(path));
    if (path.empty()) return invalid_argument("a path is needed here, not the root");
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return Split("", path);
    return Split(path.substr(0, slash), path.substr(slash + 1));
  }

  // A descriptor of its own: one that is read from front to back cannot be shared. A deleted root would look empty.
  Result<Descriptor> open_root() const {
    struct stat information {};
    if (::fstat(root_.number(), &information) != 0) return failed("examine", "");
    if (information.st_nlink == 0) return system_error("open", root_path_, ENOENT);
    return step_into(root_, ".", "");
  }

  Result<Descriptor> step_into(const Descriptor& directory, const std::string& name, std::string_view path) const {
    Descriptor next(
        uninterrupted([&] { return ::openat(directory.number(), name.c_str(), kOpenDirectory | O_NOFOLLOW); }));
    if (!next.is_open()) return failed("open the directory", path);
    return next;
  }

  Result<Descriptor> open_directory(std::string_view path) const {
    EVERSTEP_TRY(check_path(path));
    auto directory = open_root();
    for (std::size_t start = 0; directory && start < path.size();) {
      const std::size_t end = std::min(path.find('/', start), path.size());
      directory = step_into(*directory, std::string(path.substr(start, end - start)), path.substr(0, end));
      start = end + 1;
    }
    return directory;
  }

  Result<Place> find_place(std::string_view path) const {
    const auto parts = split(path);
    if (!parts) return parts.error();
    auto directory = open_directory(parts->first);
    if (!directory) return directory.error();
    return Place{std::move(*directory), std::string(parts->second)};
  }

  Result<Place> find_plain_file(std::string_view path) const {
    auto place = find_place(path);
    if (!place) return place;
    struct stat information {};
    if (::fstatat(place->directory.number(), place->name.c_str(), &information, AT_SYMLINK_NOFOLLOW) != 0) {
      return failed("examine", path);
    }
    if (!S_ISREG(information.st_mode)) return system_error("use", full(path), ENODEV);
    return place;
  }

  Status sync(const Descriptor& directory, std::string_view path) const {
    if (::fsync(directory.number()) != 0) return failed("sync the directory of", path);
    return {};
  }

  Descriptor root_;
  std::string root_path_;
};

// Makes `path` and those above it, as far as they are missing, each durable in the one above.
Status make_root(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string here = path.substr(0, end);
    if (::mkdir(here.c_str(), kOwnersDirectory) == 0) {
      const std::string above = join_path(here, "..");
      const Descriptor parent(::open(above.c_str(), kOpenDirectory));
      if (!parent.is_open() || ::fsync(parent.number()) != 0) return system_error("sync", above, errno);
    } else if (errno != EEXIST) {
      return system_error("make the directory", here, errno);
    }
    if (end == std::string::npos) return {};
  }
}

}  // namespace

Result<std::unique_ptr<FileSystem>> open_posix_file_system(const std::string& root, bool create) {
  if (root.empty()) return invalid_argument("the directory of a file system needs a name");
  if (create) EVERSTEP_TRY(make_root(root));
  Descriptor descriptor(uninterrupted([&] { return ::open(root.c_str(), kOpenDirectory); }));
  if (!descriptor.is_open()) return system_error("open the directory", root, errno);
  return {std::make_unique<PosixFileSystem>(std::move(descriptor), root)};
}

}  // namespace everstep::storage
