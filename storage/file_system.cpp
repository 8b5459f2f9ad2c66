#include "storage/file_system.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace everstep::storage {
namespace {

bool is_path_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

constexpr std::size_t kLongestComponent = 255;  // of common file systems
constexpr std::size_t kLongestPath = 4000;      // below PATH_MAX, with room for the root

const char* complaint_about(std::string_view component) {
  if (component.empty()) return "it has an empty component";
  if (component == "." || component == "..") return "'.' and '..' are not allowed";
  if (component.size() > kLongestComponent) return "a component has more than 255 characters";
  for (const char c : component) {
    if (!is_path_character(c)) return "only letters, digits, '.', '-', '_' and '/' are allowed";
  }
  return nullptr;
}

}  // namespace

Status check_path(std::string_view path) {
  if (path.empty()) return {};
  if (path.size() > kLongestPath) return invalid_argument("a path of more than 4000 characters is refused");
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (const char* complaint = complaint_about(path.substr(start, end - start)); complaint != nullptr) {
      return invalid_argument("the path '" + std::string(path) + "' is refused: " + complaint);
    }
    start = end + 1;
  }
  return {};
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!directory.empty() && !name.empty()) path += '/';
  path += name;
  return path;
}

Result<std::string> read_text(const FileSystem& files, std::string_view path, std::size_t limit) {
  const auto file = files.open(path);
  if (!file) return file.error();
  const std::uint64_t size = (*file)->size();
  if (size > limit) {
    return invalid_argument("the file '" + std::string(path) + "' has " + std::to_string(size) + " bytes, more than " +
                            std::to_string(limit));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  EVERSTEP_TRY((*file)->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status write_text(FileSystem& files, std::string_view path, std::string_view text) {
  auto file = files.create(path);
  if (!file) return file.error();
  EVERSTEP_TRY((*file)->write(std::as_bytes(std::span(text))));
  return (*file)->sync();
}

}  // namespace everstep::storage
