#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "storage/posix/posix_error.h"
#include "storage/posix/posix_file.h"

namespace everstep::storage {
namespace {

// The system gives it up when the descriptor is closed, even if the process was killed.
class PosixLock final : public Lock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

// " (pid 123)"; empty if the file does not say, because the holder has not come to it yet.
std::string holder_of(const Descriptor& file) {
  std::string text(32, '\0');
  const ssize_t size = uninterrupted([&] { return ::pread(file.number(), text.data(), text.size(), 0); });
  if (size <= 0) return "";
  text.resize(static_cast<std::size_t>(size));
  if (text.ends_with('\n')) text.pop_back();
  const auto pid = parse_number<std::int64_t>(text);
  return pid ? " (pid " + std::to_string(*pid) + ")" : "";
}

Status write_holder(const Descriptor& file, const std::string& path) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.number(), 0) != 0) return system_error("write", path, errno);
  const ssize_t size = uninterrupted([&] { return ::pwrite(file.number(), text.data(), text.size(), 0); });
  if (size < 0) return system_error("write", path, errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<Lock>> make_lock(Descriptor descriptor, const std::string& path) {
  struct stat information {};
  if (::fstat(descriptor.number(), &information) != 0) return system_error("examine", path, errno);
  if (!S_ISREG(information.st_mode)) return system_error("lock", path, ENODEV);
  if (uninterrupted([&] { return ::flock(descriptor.number(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return system_error("lock", path, errno);
    return Error{ErrorCode::kUnavailable, "'" + path + "' is in use by another everstep" + holder_of(descriptor),
                 "wait until it has ended, or stop it"};
  }
  EVERSTEP_TRY(write_holder(descriptor, path));
  return {std::make_unique<PosixLock>(std::move(descriptor))};
}

}  // namespace everstep::storage
