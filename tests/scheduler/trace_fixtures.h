#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace everstep::scheduler {

// The text of a public membership trace, for instance "bamboo/p3-trace.csv".
inline std::string trace_fixture(const std::string& name) {
  std::ifstream file(std::string(EVERSTEP_SOURCE_DIR) + "/examples/traces/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace everstep::scheduler
