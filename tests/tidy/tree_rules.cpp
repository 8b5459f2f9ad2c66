#include <algorithm>
#include <iterator>
#include <regex>
#include <string_view>

#include "tests/tidy/tidy_rules.h"

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
  check_scripts(files, violations);
  check_pages_name_real_scripts(files, violations);
  return violations;
}

Violations check_all(const Tree& files) {
  Violations violations = check_tree(files);
  for (const SourceFile& file : files) {
    for (const auto rule :
         {check_include_graph, check_foreign_headers, check_core_purity, check_toolchain_traps, check_text}) {
      append(violations, rule(file));
    }
  }
  return violations;
}

}  // namespace everstep::tidy
