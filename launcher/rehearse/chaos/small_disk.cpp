#include "launcher/rehearse/chaos/small_disk.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace everstep::launcher::chaos {
namespace {

constexpr std::size_t kSteps[] = {std::size_t{1} << 20, std::size_t{1} << 12, 1};

Error failed(const std::string& what) {
  return {ErrorCode::kUnavailable, what + ": " + std::generic_category().message(errno),
          "a full disk is rehearsed by root only"};
}

}  // namespace

bool SmallDisk::is_possible() { return ::geteuid() == 0; }

Result<std::unique_ptr<SmallDisk>> SmallDisk::mount(std::filesystem::path path, int mebibytes) {
  if (::unshare(CLONE_NEWNS) != 0) return failed("cannot leave the mounts of this system alone");
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("cannot make mounts private");
  const std::string size = "size=" + std::to_string(mebibytes) + "m";
  if (::mount("everstep-chaos", path.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, size.c_str()) != 0) {
    return failed("cannot mount a small disk at " + path.string());
  }
  return std::unique_ptr<SmallDisk>(new SmallDisk(std::move(path)));
}

SmallDisk::~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }

Status SmallDisk::fill() const {
  constexpr int kMode = 0600;
  const int file = ::open(ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (file < 0) return failed("cannot write " + ballast().string());
  const std::vector<char> bytes(kSteps[0]);
  for (const std::size_t step : kSteps) {
    while (::write(file, bytes.data(), step) > 0) {
    }
  }
  ::close(file);
  return {};
}

void SmallDisk::make_room() const {
  std::error_code ignored;
  std::filesystem::remove(ballast(), ignored);
}

}  // namespace everstep::launcher::chaos
