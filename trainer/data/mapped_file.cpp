#include "trainer/data/mapped_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace everstep::trainer {
namespace {

Error unreadable(const std::string& path, const std::string& why) {
  return invalid_argument("cannot read the data file " + path + ": " + why);
}

Error system_failure(const std::string& path, int error) {
  const std::string why = std::generic_category().message(error);
  if (error == ENOENT) return not_found("cannot read the data file " + path + ": " + why);
  return unreadable(path, why);
}

// The mapping outlives the descriptor it was made from.
Result<std::span<const std::byte>> map_descriptor(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_failure(path, errno);
  if (S_ISDIR(status.st_mode)) return unreadable(path, "it is a directory");
  if (!S_ISREG(status.st_mode)) return unreadable(path, "it is not a regular file");
  if (status.st_size == 0) return unreadable(path, "it is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return system_failure(path, errno);
  return std::span<const std::byte>(static_cast<const std::byte*>(address), size);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a named pipe without a writer must be refused, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_failure(path, errno);
  const auto bytes = map_descriptor(descriptor, path);
  ::close(descriptor);
  if (!bytes) return bytes.error();
  return MappedFile(path, *bytes);
}

MappedFile::MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace everstep::trainer
