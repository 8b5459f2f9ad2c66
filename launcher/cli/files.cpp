#include "launcher/cli/files.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

// Closes the descriptor when it goes; close_now() for those who need to know whether that went well.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool close_now() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

// "cannot read x: No such file or directory", with the code that says what to do about `error`, an errno.
Error file_error(std::string_view action, const std::string& path, int error) {
  const std::string message =
      "cannot " + std::string(action) + " " + path + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
      return not_found(message, action == "write" ? "does the directory exist?" : "");
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return invalid_argument(message);
    default:
      return {ErrorCode::kUnavailable, message, ""};
  }
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status write_in_place(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), content) || !file.close_now()) return file_error("write", path, errno);
  return {};
}

struct NewFile {
  std::string path;
  int fd = -1;  // negative: errno says why there is none
};

// A new file in `directory` under a name that nobody uses: a run that was killed may have left one with our process id.
NewFile create_in(const std::filesystem::path& directory) {
  constexpr int kAttempts = 100;
  NewFile file;
  for (int attempt = 0; attempt < kAttempts && file.fd < 0; ++attempt) {
    const std::string name = ".everstep-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    file.path = (directory / name).string();
    file.fd = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd < 0 && errno != EEXIST) break;
  }
  return file;
}

// Zero, or the errno that stopped us.
int fill_and_rename(Descriptor& file, const std::string& temporary, const std::string& target, std::string_view content,
                    std::optional<mode_t> old_mode) {
  if (old_mode && ::fchmod(file.get(), *old_mode) != 0) return errno;
  if (!write_all(file.get(), content) || ::fsync(file.get()) != 0 || !file.close_now()) return errno;
  return ::rename(temporary.c_str(), target.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return file_error("read", path, errno);
  std::string content;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path, errno);
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > max_bytes) {
      return invalid_argument("cannot read " + path + ": it has more than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

Status write_file(const std::string& path, std::string_view content) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return file_error("write", path, EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_in_place(path, content);
  if (exists && ::access(path.c_str(), W_OK) != 0) return file_error("write", path, errno);

  std::error_code unresolved;
  const auto resolved = std::filesystem::canonical(path, unresolved);
  const std::filesystem::path target = unresolved ? std::filesystem::path(path) : resolved;
  const NewFile temporary = create_in(target.parent_path());
  if (temporary.fd < 0) return file_error("write", path, errno);
  Descriptor file(temporary.fd);
  const std::optional<mode_t> old_mode = exists ? std::optional<mode_t>(old.st_mode & 07777) : std::nullopt;
  const int error = fill_and_rename(file, temporary.path, target.string(), content, old_mode);
  if (error == 0) return {};
  ::unlink(temporary.path.c_str());
  return file_error("write", path, error);
}

Result<std::string> make_temporary_directory(std::string_view word) {
  std::string name =
      (std::filesystem::temp_directory_path() / std::string("everstep-").append(word).append("-XXXXXX")).string();
  if (::mkdtemp(name.data()) != nullptr) return name;
  return Error{ErrorCode::kUnavailable, "cannot make a directory like " + name, "TMPDIR names another place"};
}

}  // namespace everstep::launcher
