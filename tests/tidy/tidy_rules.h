#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/tidy/source_file.h"

namespace everstep::tidy {

// Where a rule of ARCHITECTURE.md is broken, and what to do about it.
struct Violation {
  std::string path;
  int line = 0;  // 0: the file as a whole
  std::string message;
};

using Violations = std::vector<Violation>;

std::ostream& operator<<(std::ostream& out, const Violation& violation);

// Which room may include which (tests/tidy/rooms.h); adapters are included by launcher and tests only.
Violations check_include_graph(const SourceFile& file);

// A third-party or system header stays in the one folder that adapts it.
Violations check_foreign_headers(const SourceFile& file);

// Core files decide and never act: no clock, thread, file, environment, random device, unordered container.
Violations check_core_purity(const SourceFile& file);

// Headers that compile with GCC 12 and break clang-tidy 14, or that GCC 12 does not have.
Violations check_toolchain_traps(const SourceFile& file);

// Length, names, include guards, white space, open ends, paths of one machine.
Violations check_text(const SourceFile& file);

// Rules about several files: what is in base, sources that no target builds, tests that stand elsewhere than what they
// test, scripts and the pages that name them.
Violations check_tree(const std::vector<SourceFile>& files);

// Every rule above, over a whole tree, and the table of rooms itself.
Violations check_all(const std::vector<SourceFile>& files);

}  // namespace everstep::tidy
