#include "storage/posix/posix_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/posix/posix_error.h"

namespace everstep::storage {
namespace {

// The disk starts on these many bytes while the next ones are hashed; else it would idle until sync().
constexpr std::uint64_t kWriteBackBytes = std::uint64_t{8} << 20;

constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;  // Linux moves less than 2 GiB per call

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Status write(std::span<const std::byte> bytes) override {
    EVERSTEP_TRY(check_usable("write"));
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kLargestTransfer));
      const ssize_t written = uninterrupted([&] { return ::write(descriptor_.number(), part.data(), part.size()); });
      if (written < 0) return failed("write", errno);
      size_ += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    start_write_back();
    return {};
  }

  Status sync() override {
    EVERSTEP_TRY(check_usable("sync"));
    if (::fdatasync(descriptor_.number()) != 0) return failed("sync", errno);
    return {};
  }

 private:
  // After a failed write there is a hole; after a failed sync the system takes lost pages for clean ones, and the next
  // sync would succeed.
  Status check_usable(const char* action) const {
    if (!failed_) return {};
    return Error{ErrorCode::kUnavailable,
                 std::string("cannot ") + action + " '" + path_ + "': an earlier write or sync of it failed",
                 "write the content anew, under another name"};
  }

  Error failed(const char* action, int number) {
    failed_ = true;
    return system_error(action, path_, number);
  }

  void start_write_back() {
    if (size_ - started_ < kWriteBackBytes) return;
    // Only a request: sync() tells whether bytes arrived.
    ::sync_file_range(descriptor_.number(), static_cast<off_t>(started_), static_cast<off_t>(size_ - started_),
                      SYNC_FILE_RANGE_WRITE);
    started_ = size_;
  }

  Descriptor descriptor_;
  std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t started_ = 0;  // write-back was asked for up to here
  bool failed_ = false;
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(Descriptor descriptor, std::string path, std::uint64_t size)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kLargestTransfer));
      const ssize_t got = uninterrupted(
          [&] { return ::pread(descriptor_.number(), part.data(), part.size(), static_cast<off_t>(offset)); });
      if (got < 0) return system_error("read", path_, errno);
      if (got == 0) {
        return Error{ErrorCode::kDataLoss,
                     "cannot read '" + path_ + "': it ends after " + std::to_string(offset) + " bytes, " +
                         std::to_string(bytes.size()) + " more were expected",
                     "was it cut short while it was copied?"};
      }
      offset += static_cast<std::uint64_t>(got);
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

std::unique_ptr<WritableFile> make_writable_file(Descriptor descriptor, std::string path) {
  return std::make_unique<PosixWritableFile>(std::move(descriptor), std::move(path));
}

Result<std::unique_ptr<ReadableFile>> make_readable_file(Descriptor descriptor, std::string path) {
  struct stat information {};
  if (::fstat(descriptor.number(), &information) != 0) return system_error("examine", path, errno);
  if (S_ISDIR(information.st_mode)) return system_error("read", path, EISDIR);
  if (!S_ISREG(information.st_mode)) return system_error("read", path, ENODEV);
  return {std::make_unique<PosixReadableFile>(std::move(descriptor), std::move(path),
                                              static_cast<std::uint64_t>(information.st_size))};
}

}  // namespace everstep::storage
