#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace everstep::tidy {

// One file as the rules see it.
struct SourceFile {
  std::string path;  // from the root of the tree, with '/'
  std::string text;
  bool executable = false;

  std::string_view name() const;       // after the last '/'
  std::string_view directory() const;  // before the last '/', empty at the root
  std::string_view folder() const;     // before the first '/', empty at the root
  bool is_header() const;
  bool is_cpp() const;  // source or header
};

struct Include {
  int line = 0;
  bool angled = false;  // <path>, not "path"
  std::string path;
};

std::vector<std::string_view> lines_of(std::string_view text);
std::vector<Include> includes_of(const SourceFile& file);

// The text with comments and the insides of literals blanked out; every line stays where it is.
std::string code_only(std::string_view text);

// Every file below `root` that people write: C++, CMake, Markdown, JSON, scripts. Leaves out build trees and what git
// keeps for itself.
std::vector<SourceFile> read_tree(const std::filesystem::path& root);

}  // namespace everstep::tidy
