#pragma once

#include <string>
#include <vector>

namespace everstep::launcher {

struct Ended {
  int exit_code = -1;  // negative: the signal that ended it
  std::string out;
  std::string log;
};

// Runs the everstep program with these arguments and only these variables ("NAME=value") to its end.
Ended run_program(const std::vector<std::string>& args, const std::vector<std::string>& environment = {});

// The same with standard output at a place that fails: a device such as /dev/full, or a pipe without a reader if empty.
Ended run_program_into(const std::string& device, const std::vector<std::string>& args);

}  // namespace everstep::launcher
