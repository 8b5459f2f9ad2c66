#pragma once

#include <string>

namespace everstep::launcher {

// What a program was built from, and how, for reports of what went wrong. Empty: nobody knows.
struct BuildFacts {
  std::string commit;  // and whether files were changed, as git had it when CMake was run last
  std::string preset;
  std::string type;
  std::string compiler;
  std::string flags;
};

// By main, before anybody asks.
void tell_build(BuildFacts facts);

const BuildFacts& build_facts();

}  // namespace everstep::launcher
