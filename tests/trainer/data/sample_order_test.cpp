#include "trainer/data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "trainer/model/random_key.h"

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

// ---- statistics: all with fixed seeds, and five standard deviations of what true randomness would give ----

using Counts = std::vector<std::vector<int>>;

Counts table(std::int64_t size) {
  return Counts(static_cast<std::size_t>(size), std::vector<int>(static_cast<std::size_t>(size)));
}

double chi_square(const std::vector<int>& counts, double expected) {
  return std::accumulate(counts.begin(), counts.end(), 0.0, [&](double sum, int count) {
    return sum + (count - expected) * (count - expected) / expected;
  });
}

void expect_chi_square(double value, double degrees) {
  EXPECT_NEAR(value, degrees, 5 * std::sqrt(2 * degrees)) << "chi square / df = " << value / degrees;
}

// Each of `draws` permutations has added one to every row and column, so that (n − 1)² counts are free.
void expect_even(const Counts& counts, int draws) {
  const auto size = static_cast<double>(counts.size());
  double sum = 0;
  for (const auto& row : counts) sum += chi_square(row, draws / size);
  expect_chi_square(sum * (size - 1) / size, (size - 1) * (size - 1));
}

bool is_odd(const std::vector<std::int64_t>& permutation) {
  std::vector<bool> visited(permutation.size());
  std::size_t cycles = 0;
  for (std::size_t first = 0; first < permutation.size(); ++first) {
    if (visited[first]) continue;
    ++cycles;
    for (std::size_t at = first; !visited[at]; at = static_cast<std::size_t>(permutation[at])) visited[at] = true;
  }
  return (permutation.size() - cycles) % 2 == 1;
}

TEST(SampleOrder, HasEveryOrderOfFewSamplesEquallyOften) {
  constexpr int kEach = 200;
  for (const std::int64_t samples : {2, 3, 4, 5}) {
    SCOPED_TRACE(samples);
    const SampleOrder order(3, samples);
    std::map<std::vector<std::int64_t>, int> count_of;
    auto permutation = counting(samples);
    do count_of[permutation] = 0;
    while (std::next_permutation(permutation.begin(), permutation.end()));
    const auto orders = static_cast<int>(count_of.size());
    for (int epoch = 0; epoch < kEach * orders; ++epoch) ++count_of.at(epoch_of(order, samples, epoch));
    std::vector<int> counts;
    for (const auto& [unused, count] : count_of) counts.push_back(count);
    expect_chi_square(chi_square(counts, kEach), orders - 1);
  }
}

TEST(SampleOrder, FavoursNoPlace) {
  constexpr int kEpochs = 1000;
  for (const std::int64_t samples : {16, 100, 1000}) {
    SCOPED_TRACE(samples);
    Counts hits = table(samples);
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const Permutation order(random_stream(3, RandomUse::kSampleOrder, 0, epoch), samples);
      for (std::int64_t place = 0; place < samples; ++place) ++hits[place][order.at(place)];
    }
    expect_even(hits, kEpochs);
  }
}

// A Feistel network on 4^k values makes even ones only.
TEST(SampleOrder, IsOddAsOftenAsEven) {
  constexpr int kEpochs = 1000;
  for (const std::int64_t samples : {9, 16, 64, 81, 100, 256}) {
    const SampleOrder order(3, samples);
    int odd = 0;
    for (int epoch = 0; epoch < kEpochs; ++epoch) odd += is_odd(epoch_of(order, samples, epoch)) ? 1 : 0;
    EXPECT_NEAR(odd, kEpochs / 2, 79) << samples;
  }
}

// Where a sample was says nothing about where it will be in the next epoch, nor which ones are beside it.
TEST(SampleOrder, OfAnEpochTellsNothingOfTheNextAndOfAPlaceNothingOfItsNeighbour) {
  constexpr std::int64_t kSamples = 16;
  constexpr int kEpochs = 5000;
  const SampleOrder order(3, kSamples);
  Counts places = table(kSamples);
  std::vector<int> pairs(kSamples * kSamples);
  auto before = epoch_of(order, kSamples, 0);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const auto now = epoch_of(order, kSamples, epoch);
    for (std::int64_t place = 0; place < kSamples; ++place) {
      ++places[before[place]][now[place]];
      if (place > 0) ++pairs[now[place - 1] * kSamples + now[place]];
    }
    before = now;
  }
  expect_even(places, kEpochs);
  std::erase(pairs, 0);  // no sample is beside itself
  ASSERT_EQ(pairs.size(), kSamples * (kSamples - 1));
  expect_chi_square(chi_square(pairs, static_cast<double>(kEpochs) / kSamples), kSamples * (kSamples - 1) - 1);
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
