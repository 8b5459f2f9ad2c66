#include <algorithm>
#include <cctype>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "elastic/sim/mutation.h"
#include "elastic/sim/simulation.h"

namespace everstep::elastic::sim {
namespace {

constexpr std::uint64_t kMostSeeds = 10'000;

class Mutant : public testing::TestWithParam<Mutation> {};

TEST_P(Mutant, IsCaught) {
  for (std::uint64_t seed = 0; seed < kMostSeeds; ++seed) {
    const SimulationReport report = simulate({.seed = seed, .mutation = GetParam()});
    if (!report.violation) continue;
    EXPECT_FALSE(simulate({.seed = seed}).violation) << "without the mistake, seed " << seed << " holds";
    std::cout << to_string(GetParam()) << ": seed " << seed << ": " << *report.violation << "\n";
    return;
  }
  FAIL() << to_string(GetParam()) << " went unnoticed for " << kMostSeeds << " seeds";
}

std::string name_of(const testing::TestParamInfo<Mutation>& info) {
  std::string name;
  bool is_first = true;
  for (const char letter : to_string(info.param)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) {
      is_first = true;
      continue;
    }
    name += is_first ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    is_first = false;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, Mutant, testing::ValuesIn(all_mutations()), name_of);

}  // namespace
}  // namespace everstep::elastic::sim
