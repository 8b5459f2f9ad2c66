#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/sim/simulation.h"

namespace everstep::elastic::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeedsPerPart = 8;
#else
constexpr std::uint64_t kSeedsPerPart = 100;
#endif

std::string replay(std::uint64_t seed) { return "everstep sim --seed=" + std::to_string(seed) + " --trace"; }

// Twenty parts, so that they can run side by side.
class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, HoldAllOracles) {
  for (std::uint64_t at = 0; at < kSeedsPerPart; ++at) {
    const std::uint64_t seed = GetParam() * 1000 + at;
    const SimulationReport report = simulate({.seed = seed});
    ASSERT_FALSE(report.violation) << *report.violation << "\nreplay it with " << replay(seed);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Seeds, testing::Range<std::uint64_t>(0, 20));

TEST(Seed, HasOneHistory) {
  for (const std::uint64_t seed : {5, 17, 403}) {
    std::vector<std::string> first;
    std::vector<std::string> second;
    const auto into = [](std::vector<std::string>& lines) {
      return [&lines](const std::string& line) { lines.push_back(line); };
    };
    const SimulationReport report = simulate({.seed = seed, .trace = into(first)});
    EXPECT_EQ(simulate({.seed = seed, .trace = into(second)}), report);
    EXPECT_EQ(first, second);
    EXPECT_GT(first.size(), 20U);
    EXPECT_EQ(simulate({.seed = seed}), report) << "to look on changes nothing";
  }
}

TEST(Seed, CommitsMuchOftenChangesGenerationsAndRecoversFromMemory) {
  std::int64_t commits = 0;
  std::int64_t generations = 0;
  std::int64_t recoveries = 0;
  std::int64_t group_stops = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SimulationReport report = simulate({.seed = seed});
    commits += report.commits;
    generations += report.generations;
    recoveries += report.recoveries;
    group_stops += report.group_stops;
  }
  EXPECT_GT(commits, 100);
  EXPECT_GT(generations, 40);
  EXPECT_GT(recoveries, 10);
  EXPECT_GT(group_stops, 3);
}

}  // namespace
}  // namespace everstep::elastic::sim
