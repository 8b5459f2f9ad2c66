#include "elastic/sim/fault.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "elastic/sim/simulation.h"

namespace everstep::elastic::sim {
namespace {

TEST(Faults, AllAppear) {
  FaultCounts counts;
  const auto is_missing = [&](Fault fault) { return counts.of(fault) == 0; };
  const auto& all = all_faults();
  for (std::uint64_t seed = 0; seed < 2000 && std::any_of(all.begin(), all.end(), is_missing); ++seed) {
    counts.add(simulate({.seed = seed}).faults);
  }
  for (const Fault fault : all) EXPECT_GT(counts.of(fault), 0) << "F" << number_of(fault) << ": " << to_string(fault);
}

TEST(Faults, AreTheRowsOfTheMatrixThatConcernTheControlPlane) {
  std::set<int> numbers;
  for (const Fault fault : all_faults()) numbers.insert(number_of(fault));
  EXPECT_EQ(numbers,
            (std::set<int>{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22,
                           23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 34, 35, 36, 37, 38, 40, 41, 43, 45, 47, 48}));
}

}  // namespace
}  // namespace everstep::elastic::sim
