#include "elastic/brain/suspicion.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

std::set<WorkerId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::set<WorkerId> result;
  for (const auto number : numbers) result.insert(worker(number));
  return result;
}

std::vector<WorkerId> five() { return {worker(1), worker(2), worker(3), worker(4), worker(5)}; }

TEST(Suspicion, BlamesTheSuspectThatSaysNothingForEverything) {
  const std::set<std::pair<WorkerId, WorkerId>> suspicions = {{worker(3), worker(2)}, {worker(2), worker(1)}};
  EXPECT_EQ(outcasts(five(), suspicions, ids({1, 2, 4, 5})), ids({3}));
}

TEST(Suspicion, KeepsTheLargerSideOfACut) {
  std::set<std::pair<WorkerId, WorkerId>> suspicions;
  for (const int small : {1, 2}) {
    for (const int large : {3, 4, 5}) suspicions.emplace(worker(large), worker(small));
  }
  EXPECT_EQ(outcasts(five(), suspicions, ids({1, 2, 3, 4, 5})), ids({1, 2}));
}

TEST(Suspicion, KeepsTheSmallestIdOfEqualSides) {
  const std::vector<WorkerId> four = {worker(1), worker(2), worker(3), worker(4)};
  std::set<std::pair<WorkerId, WorkerId>> suspicions;
  for (const int a : {1, 4}) {
    for (const int b : {2, 3}) suspicions.emplace(worker(a), worker(b));
  }
  EXPECT_EQ(outcasts(four, suspicions, ids({1, 2, 3, 4})), ids({2, 3}));
}

TEST(Suspicion, OfNobodyLeavesEverybody) { EXPECT_TRUE(outcasts(five(), {}, {}).empty()); }

TEST(Suspicion, IsBoundedForManyWorkers) {
  std::vector<WorkerId> many;
  std::set<std::pair<WorkerId, WorkerId>> suspicions;
  std::set<WorkerId> answered;
  for (std::uint64_t i = 0; i < 200; ++i) {
    many.push_back(worker(i));
    answered.insert(worker(i));
    if (i > 0) suspicions.emplace(worker(i), worker(0));
  }
  EXPECT_EQ(outcasts(many, suspicions, answered), ids({0}));
}

}  // namespace
}  // namespace everstep::elastic::test
