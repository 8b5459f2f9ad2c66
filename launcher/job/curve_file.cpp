#include "launcher/job/curve_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/json/json_reader.h"
#include "storage/posix/posix_error.h"
#include "storage/posix/posix_file.h"

namespace everstep::launcher {
namespace {

constexpr std::streamoff kLongestLine = 4096;

std::optional<std::int64_t> step_of(std::string_view line) {
  const auto json = storage::parse_json(line);
  if (!json) return std::nullopt;
  const auto step = storage::JsonReader(*json).integer_at("step");
  return step ? std::optional(*step) : std::nullopt;
}

// Of the last line, if the file ends with a whole one.
std::optional<std::int64_t> last_step(std::ifstream& file) {
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  const std::streamoff begin = std::max<std::streamoff>(0, size - kLongestLine);
  std::string tail(static_cast<std::size_t>(size - begin), '\0');
  file.seekg(begin);
  if (!file.read(tail.data(), static_cast<std::streamsize>(tail.size())) || !tail.ends_with('\n')) return std::nullopt;
  tail.pop_back();
  const std::size_t newline = tail.rfind('\n');
  if (newline == std::string::npos && begin > 0) return std::nullopt;
  return step_of(newline == std::string::npos ? tail : tail.substr(newline + 1));
}

}  // namespace

Result<std::int64_t> CurveFile::cut_after(std::int64_t step) {
  if (!std::filesystem::exists(path_)) return std::int64_t{0};
  std::ifstream file(path_, std::ios::binary);
  if (!file) return storage::system_error("read", path_, errno);
  const auto last = last_step(file);
  if (last && *last <= step) return *last;
  return read_through(step);
}

Result<std::int64_t> CurveFile::read_through(std::int64_t step) {
  std::ifstream file(path_, std::ios::binary);
  std::int64_t last = 0;
  std::int64_t good_bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto found = step_of(line);
    if (!found || *found <= last || *found > step) break;
    last = *found;
    good_bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  if (::truncate(path_.c_str(), good_bytes) != 0) return storage::system_error("cut", path_, errno);
  return last;
}

Status CurveFile::append(const std::string& lines) {
  if (lines.empty()) return {};
  storage::Descriptor descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!descriptor.is_open()) return storage::system_error("open", path_, errno);
  const auto file = storage::make_writable_file(std::move(descriptor), path_);
  EVERSTEP_TRY(file->write(std::as_bytes(std::span(lines))));
  return file->sync();
}

}  // namespace everstep::launcher
