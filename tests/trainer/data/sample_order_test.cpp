#include "trainer/data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep::trainer {
namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t samples, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) indices.push_back(order.at(epoch * samples + i));
  return indices;
}

std::vector<std::int64_t> counting(std::int64_t size) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(SampleOrder, VisitsEverySampleOnceAnEpoch) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const auto samples = *rc::gen::inRange<std::int64_t>(1, 700);
    const auto epoch = *rc::gen::inRange<std::int64_t>(0, 1000);
    auto visited = epoch_of(SampleOrder(seed, samples), samples, epoch);
    std::sort(visited.begin(), visited.end());
    RC_ASSERT(visited == counting(samples));
  }));
}

TEST(SampleOrder, DiffersBetweenEpochsAndSeeds) {
  const SampleOrder order(1, 100);
  const auto first = epoch_of(order, 100, 0);
  EXPECT_NE(first, counting(100));
  EXPECT_NE(first, epoch_of(order, 100, 1));
  EXPECT_NE(first, epoch_of(SampleOrder(2, 100), 100, 0));
  EXPECT_EQ(first, epoch_of(SampleOrder(1, 100), 100, 0));
}

// Over many epochs each sample is as likely in each place as in any other.
TEST(SampleOrder, FavoursNoPlace) {
  constexpr std::int64_t kSamples = 5;
  constexpr int kEpochs = 5000;
  const SampleOrder order(3, kSamples);
  std::vector<std::vector<int>> hits(kSamples, std::vector<int>(kSamples));
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto indices = epoch_of(order, kSamples, epoch);
    for (std::size_t place = 0; place < indices.size(); ++place)
      ++hits[place][static_cast<std::size_t>(indices[place])];
  }
  // Five standard deviations of a binomial with p = 1/5.
  for (const auto& row : hits) {
    for (const int count : row) EXPECT_NEAR(count, kEpochs / kSamples, 142);
  }
}

TEST(Permutation, ReachesFarIntoLargeSizes) {
  constexpr std::int64_t kSize = (std::int64_t{1} << 61) + 12345;
  const Permutation permutation(RandomStream(1, 2), kSize);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 1000; ++i) values.push_back(permutation.at(i));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, 0);
  EXPECT_LT(*least, kSize / 100);
  EXPECT_GT(*most, kSize / 100 * 99);
  EXPECT_LT(*most, kSize);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

}  // namespace
}  // namespace everstep::trainer
