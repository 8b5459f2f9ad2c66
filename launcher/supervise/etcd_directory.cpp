#include "launcher/supervise/etcd_directory.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/job/lineage.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kPrefix = "etcd-";

// Only what make() could have made.
bool has_its_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kPrefix) && parse_hex(name.substr(kPrefix.size()));
}

// −1: it cannot be opened, or another process has it.
int lock(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0 || ::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const int reason = errno;
  ::close(file);
  errno = reason;
  return -1;
}

}  // namespace

Result<std::unique_ptr<EtcdDirectory>> EtcdDirectory::make(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / (std::string(kPrefix) + hex_text(random_lineage()));
  constexpr int kMode = 0700;
  const int file = ::mkdir(path.c_str(), kMode) == 0 ? lock(path) : -1;
  if (file < 0) {
    return Error{ErrorCode::kUnavailable,
                 "cannot make " + path.string() + " for our own etcd: " + std::generic_category().message(errno), ""};
  }
  return std::unique_ptr<EtcdDirectory>(new EtcdDirectory(path, file));
}

EtcdDirectory::~EtcdDirectory() { ::close(lock_); }

void EtcdDirectory::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void remove_left_etcd_data(const std::filesystem::path& run_directory) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(run_directory, ignored)) {
    if (has_its_name(entry.path())) found.push_back(entry.path());
  }
  for (const std::filesystem::path& path : found) {
    const int file = lock(path);
    if (file < 0) continue;
    std::filesystem::remove_all(path, ignored);
    ::close(file);
  }
}

}  // namespace everstep::launcher
