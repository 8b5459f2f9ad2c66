#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "tests/tidy/rooms.h"

namespace everstep::tidy {
namespace {

constexpr std::ptrdiff_t kMostHeadersInBase = 10;

using Tree = std::vector<SourceFile>;

const SourceFile* find_file(const Tree& files, std::string_view path) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

void append(Violations& all, Violations more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// base is for what every folder needs; it stays small because it may not grow.
void check_base_is_small(const Tree& files, Violations& violations) {
  const auto headers = std::count_if(files.begin(), files.end(),
                                     [](const auto& file) { return file.folder() == "base" && file.is_header(); });
  if (headers <= kMostHeadersInBase) return;
  violations.push_back({"base", 0,
                        std::to_string(headers) + " headers, more than " + std::to_string(kMostHeadersInBase) +
                            " (hint: move what one folder uses into that folder)"});
}

bool lists(const SourceFile& cmake_lists, const SourceFile& source) {
  const std::string prefix = std::string(cmake_lists.directory()) + "/";
  if (cmake_lists.name() != "CMakeLists.txt" || !source.path.starts_with(prefix)) return false;
  const std::string name = std::regex_replace(source.path.substr(prefix.size()), std::regex("\\."), "\\.");
  return std::regex_search(cmake_lists.text, std::regex("(^|[\\s(])" + name + "([\\s)]|$)"));
}

// A source that no CMakeLists.txt names compiles nowhere and tests nothing.
void check_sources_are_built(const Tree& files, Violations& violations) {
  for (const SourceFile& source : files) {
    if (!source.path.ends_with(".cpp")) continue;
    if (std::any_of(files.begin(), files.end(), [&](const auto& file) { return lists(file, source); })) continue;
    violations.push_back({source.path, 0, "no target builds it (hint: name it in the CMakeLists.txt of its folder)"});
  }
}

// Folders of tests that have no counterpart: what they test is no room, or they only serve other tests.
constexpr std::string_view kOtherTests[] = {"tests",         "tests/accelerator",   "tests/cuda_runtime",
                                            "tests/docs",    "tests/package",       "tests/package/consumer",
                                            "tests/scripts", "tests/storage/fakes", "tests/storage/fuzz",
                                            "tests/tidy",    "tests/toolchain"};

// A test stands where what it tests stands: tests/storage/json for storage/json, and a file `frame_test.cpp` beside the
// mirror image of frame.h, if there is such a file in that top folder at all.
void check_tests_mirror_the_tree(const Tree& files, Violations& violations) {
  std::map<std::string, std::set<std::string>> homes;  // by top folder and name without ending
  std::set<std::string, std::less<>> directories;
  for (const SourceFile& file : files) {
    if (!file.is_cpp() || room_of(file) == nullptr) continue;
    directories.insert(std::string(file.directory()));
    const std::string name(file.name().substr(0, file.name().find('.')));
    homes[std::string(file.folder()) + "/" + name].insert(std::string(file.directory()));
  }
  for (const SourceFile& file : files) {
    const bool is_elsewhere =
        std::find(std::begin(kOtherTests), std::end(kOtherTests), file.directory()) != std::end(kOtherTests);
    if (file.folder() != "tests" || !file.is_cpp() || is_elsewhere) continue;
    const SourceFile mirrored{file.path.substr(std::string_view("tests/").size()), {}};
    const auto report = [&](const std::string& message) { violations.push_back({file.path, 0, message}); };
    if (!directories.contains(mirrored.directory())) {
      report("tests nothing that is there: no folder " + std::string(mirrored.directory()) +
             " (hint: tests stand in the mirror image of what they test)");
    }
    if (!file.path.ends_with("_test.cpp")) continue;
    const std::string tested(mirrored.name().substr(0, mirrored.name().rfind("_test.cpp")));
    const auto home = homes.find(std::string(mirrored.folder()) + "/" + tested);
    if (home == homes.end() || home->second.contains(std::string(mirrored.directory()))) continue;
    report("tests what is in " + *home->second.begin() + " (hint: move it to tests/" + *home->second.begin() +
           ", or name it after what it tests)");
  }
}

void check_scripts(const Tree& files, Violations& violations) {
  for (const SourceFile& file : files) {
    if (file.folder() != "scripts" || file.name() == "lib.sh") continue;
    const auto report = [&](const std::string& message) { violations.push_back({file.path, 0, message}); };
    if (!file.executable) report("a script that is not executable (hint: chmod +x)");
    if (!std::regex_search(file.text, std::regex("[Uu]sage: " + file.path)) ||
        !std::regex_search(file.text, std::regex("--help|help_or_refuse"))) {
      report("a script without --help (hint: describe it under 'Usage: " + file.path +
             "' and answer --help with that)");
    }
  }
}

// The pages that tell people what to type name scripts that exist, and README names the two that matter.
void check_pages_name_real_scripts(const Tree& files, Violations& violations) {
  static const std::regex command(R"(\bscripts/([a-z_]+))");
  for (const std::string page : {"README.md", "CONTRIBUTING.md"}) {
    const SourceFile* file = find_file(files, page);
    if (file == nullptr) {
      violations.push_back({page, 0, "is missing (hint: write it)"});
      continue;
    }
    for (auto match = std::sregex_iterator(file->text.begin(), file->text.end(), command);
         match != std::sregex_iterator(); ++match) {
      if (find_file(files, match->str()) != nullptr) continue;
      violations.push_back({page, 0, "names " + match->str() + ", which is not there (hint: correct the page)"});
    }
    for (const std::string script : {"scripts/test", "scripts/demo"}) {
      if (file->text.find(script) != std::string::npos) continue;
      violations.push_back(
          {page, 0, "does not name " + script + " (hint: show it; it is one of the two first commands)"});
    }
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
  out << violation.path << ":";
  if (violation.line > 0) out << violation.line << ":";
  return out << " " << violation.message;
}

Violations check_tree(const Tree& files) {
  Violations violations;
  check_base_is_small(files, violations);
  check_sources_are_built(files, violations);
  check_tests_mirror_the_tree(files, violations);
  check_scripts(files, violations);
  check_pages_name_real_scripts(files, violations);
  return violations;
}

Violations check_all(const Tree& files) {
  Violations violations = check_rooms(rooms());
  append(violations, check_tree(files));
  for (const SourceFile& file : files) {
    for (const auto rule :
         {check_include_graph, check_foreign_headers, check_core_purity, check_toolchain_traps, check_text}) {
      append(violations, rule(file));
    }
  }
  return violations;
}

}  // namespace everstep::tidy
