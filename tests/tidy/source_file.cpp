#include "tests/tidy/source_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>

namespace everstep::tidy {
namespace {

namespace fs = std::filesystem;

// Where the literal or comment that starts at `begin` ends (one past its last character); `begin` itself if none does.
std::size_t end_of_hidden(std::string_view text, std::size_t begin) {
  const auto past = [&](std::string_view terminator, std::size_t from) {
    const std::size_t found = text.find(terminator, from);
    return found == std::string_view::npos ? text.size() : found + terminator.size();
  };
  const std::string_view rest = text.substr(begin);
  if (rest.starts_with("//")) return std::min(text.find('\n', begin), text.size());
  if (rest.starts_with("/*")) return past("*/", begin + 2);
  if (rest.starts_with("R\"")) {
    const std::size_t open = std::min(text.find('(', begin), text.size());
    return past(")" + std::string(text.substr(begin + 2, open - begin - 2)) + "\"", open);
  }
  // A quote behind a digit separates digits.
  const bool separator = begin > 0 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0;
  if (rest.front() != '"' && (rest.front() != '\'' || separator)) return begin;
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != rest.front()) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

bool is_build_tree_or_hidden(const fs::path& directory) {
  const std::string name = directory.filename().string();
  return name.starts_with("build") || (name.starts_with(".") && name != ".ci");
}

bool is_written_by_people(const fs::path& file) {
  static const std::vector<std::string> extensions = {".h",  ".cpp",   ".cu",   ".hpp", ".cc", ".cxx",
                                                      ".in", ".cmake", ".json", ".md",  ".py", ".sh"};
  const std::string directory = file.parent_path().filename().string();
  return std::find(extensions.begin(), extensions.end(), file.extension()) != extensions.end() ||
         file.filename() == "CMakeLists.txt" || directory == "scripts" || directory == ".ci";
}

SourceFile read_file(const fs::path& root, const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const bool executable = (fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none;
  return {fs::relative(file, root).generic_string(), std::string(std::istreambuf_iterator<char>(stream), {}),
          executable};
}

}  // namespace

std::string_view SourceFile::name() const { return std::string_view(path).substr(path.rfind('/') + 1); }

std::string_view SourceFile::directory() const {
  const std::size_t slash = path.rfind('/');
  return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
}

std::string_view SourceFile::folder() const {
  const std::size_t slash = path.find('/');
  return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
}

bool SourceFile::is_header() const { return path.ends_with(".h") || path.ends_with(".h.in"); }

bool SourceFile::is_cpp() const { return is_header() || path.ends_with(".cpp") || path.ends_with(".cu"); }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*$)re");
  std::vector<Include> includes;
  int number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    std::match_results<std::string_view::const_iterator> match;
    if (std::regex_match(line.begin(), line.end(), match, pattern))
      includes.push_back({number, match[1] == "<", match[2]});
  }
  return includes;
}

std::string code_only(std::string_view text) {
  std::string code(text);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = end_of_hidden(text, at);
    std::replace_if(
        code.begin() + static_cast<std::ptrdiff_t>(at), code.begin() + static_cast<std::ptrdiff_t>(end),
        [](char c) { return c != '\n'; }, ' ');
    at = std::max(end, at + 1);
  }
  return code;
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_build_tree_or_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && is_written_by_people(entry->path())) {
      files.push_back(read_file(root, entry->path()));
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace everstep::tidy
