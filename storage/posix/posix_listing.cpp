#include "storage/posix/posix_listing.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "storage/posix/posix_error.h"

namespace everstep::storage {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

// What kind of entry it is; some file systems do not tell while listing.
unsigned type_of(const Descriptor& directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type;
  struct stat information {};
  if (::fstatat(directory.number(), entry.d_name, &information, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return IFTODT(information.st_mode);
}

}  // namespace

Result<std::vector<DirectoryEntry>> list_entries(const Descriptor& directory, const std::string& path) {
  const int number = ::fcntl(directory.number(), F_DUPFD_CLOEXEC, 0);  // closedir closes it
  const std::unique_ptr<DIR, CloseDirectory> stream(number < 0 ? nullptr : ::fdopendir(number));
  if (stream == nullptr) return system_error("list", path, errno);
  std::vector<DirectoryEntry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    const unsigned type = type_of(directory, *entry);
    if (name != "." && name != ".." && (type == DT_REG || type == DT_DIR)) entries.push_back({name, type == DT_DIR});
    errno = 0;
  }
  if (errno != 0) return system_error("list", path, errno);
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace everstep::storage
