#include "launcher/worker/device_claim.h"

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <thread>

#include <fcntl.h>

#include "trainer/socket/sockets.h"
#include "trainer/socket/unix_sockets.h"
#include "trainer/wire/frame.h"

namespace everstep::launcher {
namespace {

using trainer::FileDescriptor;

// One file for all devices, which are bytes of it: nothing is left behind that somebody would have to remove.
constexpr const char* kLockFile = "devices.lock";

off_t byte_of(const std::string& kind, int number, const trainer::DeviceFacts& device) {
  const std::string text = kind + ":" + (device.id.empty() ? std::to_string(number) : device.id);
  constexpr std::uint64_t kLargestOffset = (std::uint64_t{1} << 62) - 1;
  return static_cast<off_t>(trainer::byte_checksum(std::as_bytes(std::span(text))) & kLargestOffset);
}

enum class Lock : short {
  kAlone = F_WRLCK,
  kWithOthers = F_RDLCK,
};

// Locks of an open file and not of a process: two of one process are two. One that is held is changed at once.
bool set_lock(const FileDescriptor& file, Lock lock, off_t byte, int how) {
  struct flock range {};
  range.l_type = static_cast<short>(lock);
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  int failed = 0;
  do failed = ::fcntl(file.get(), how, &range);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
}

// Nobody else has it; afterwards others may share it.
bool take_alone(const FileDescriptor& file, off_t byte) {
  return set_lock(file, Lock::kAlone, byte, F_OFD_SETLK) && set_lock(file, Lock::kWithOthers, byte, F_OFD_SETLK);
}

Error cannot(const std::string& what, const std::filesystem::path& directory) {
  return invalid_argument("cannot " + what + " " + (directory / kLockFile).string() + ": " + trainer::errno_text(errno),
                          "a device with a number, such as cuda:0, is taken without it");
}

Result<FileDescriptor> open_locks(const std::filesystem::path& directory) {
  EVERSTEP_TRY(trainer::make_private_directory(directory));
  FileDescriptor file(::open((directory / kLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return cannot("open", directory);
  return file;
}

}  // namespace

Result<DeviceClaim> DeviceClaim::take(const DeviceName& name, const std::vector<trainer::DeviceFacts>& devices,
                                      const std::filesystem::path& directory, std::chrono::milliseconds patience) {
  auto file = open_locks(directory);
  const auto byte = [&](int number) { return byte_of(name.kind, number, devices[static_cast<std::size_t>(number)]); };
  if (name.number) {
    if (!file) return DeviceClaim(FileDescriptor(), *name.number, false);
    const bool is_alone = take_alone(*file, byte(*name.number));
    // Whoever looks whether it is free holds it alone for an instant.
    if (!is_alone) set_lock(*file, Lock::kWithOthers, byte(*name.number), F_OFD_SETLKW);
    return DeviceClaim(std::move(*file), *name.number, !is_alone);
  }
  if (!file) return file.error();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    for (int number = 0; number < std::ssize(devices); ++number) {
      if (take_alone(*file, byte(number))) return DeviceClaim(std::move(*file), number, false);
      if (errno != EAGAIN && errno != EACCES) return cannot("lock", directory);
    }
    if (std::chrono::steady_clock::now() >= end) break;
    constexpr std::chrono::milliseconds kPause{50};
    std::this_thread::sleep_for(kPause);
  }
  return Error{
      ErrorCode::kUnavailable,
      "each device of the kind " + name.kind + " has a worker already, and there are " + std::to_string(devices.size()),
      "--device=" + name.kind + ":0 takes the first one all the same"};
}

}  // namespace everstep::launcher
