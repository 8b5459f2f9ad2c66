#include "base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that Random123, the authors' implementation, publishes for philox4x32 with ten rounds.
TEST(Philox, GivesThePublishedAnswers) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsKnownWhenCompiling) {
  static_assert(philox({0, 0}, {0, 0, 0, 0})[0] == 0x6627e8d5);
  static_assert(RandomStream(1, 2).bits(3) == RandomStream(1, 2).bits(3));
}

TEST(RandomStream, ReadsTheSeedAsKeyAndIndexAndStreamAsCounter) {
  const RandomStream stream(0x299f31d0a4093822, 0x0370734413198a2e);
  EXPECT_EQ(stream.bits(0x85a308d3243f6a88), 0x94fdccebd16cfe09U);
}

TEST(RandomStream, DependsOnSeedStreamAndIndexAlone) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      for (std::uint64_t index = 0; index < 100; ++index) seen.insert(RandomStream(seed, stream).bits(index));
    }
  }
  EXPECT_EQ(seen.size(), 10U * 10U * 100U);
}

TEST(RandomStream, KeepsHighAndLowWordsApart) {
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 32;
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {std::uint64_t{1}, kHigh}) {
    for (const std::uint64_t stream : {std::uint64_t{1}, kHigh}) {
      for (const std::uint64_t index : {std::uint64_t{1}, kHigh}) seen.insert(RandomStream(seed, stream).bits(index));
    }
  }
  EXPECT_EQ(seen.size(), 8U);
}

TEST(RandomStream, StaysBelowTheBound) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const auto bound = *rc::gen::oneOf(rc::gen::positive<std::uint64_t>(), rc::gen::inRange<std::uint64_t>(1, 10));
    RC_ASSERT(RandomStream(seed, stream).below(index, bound) < bound);
    const double uniform = RandomStream(seed, stream).uniform(index);
    RC_ASSERT(uniform >= 0.0);
    RC_ASSERT(uniform < 1.0);
    RC_ASSERT(std::ldexp(uniform, 53) == std::floor(std::ldexp(uniform, 53)));
  }));
}

TEST(RandomStream, HitsEveryResidueAboutEquallyOften) {
  constexpr int kDraws = 70'000;
  const RandomStream stream(2026, 0);
  std::array<int, 7> count{};
  double sum = 0;
  for (std::uint64_t index = 0; index < kDraws; ++index) {
    ++count[stream.below(index, count.size())];
    sum += stream.uniform(index);
  }
  // Five standard deviations of a binomial (about 93) and of a mean of uniforms (about 0.0011).
  for (const int hits : count) EXPECT_NEAR(hits, kDraws / 7, 463);
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0055);
}

}  // namespace
}  // namespace everstep
