#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/bf16.h"
#include "trainer/kernels/dropout.h"
#include "trainer/kernels/exponential.h"
#include "trainer/kernels/finite.h"
#include "trainer/kernels/fixed_point.h"
#include "trainer/kernels/sums.h"
#include "trainer/update/fixed_point.h"
#include "trainer/update/loops.h"

namespace everstep::trainer::kernels {
namespace {

std::vector<std::int64_t> random_sums(std::int64_t count, std::uint64_t stream) {
  const RandomStream random{19, stream};
  std::vector<std::int64_t> sums;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = static_cast<std::uint64_t>(2 * i);
    sums.push_back(static_cast<std::int64_t>(random.bits(draw)) >> random.below(draw + 1, 60));
  }
  return sums;
}

TEST(Grid, DoesEachItemOnce) {
  for (const std::int64_t size : kSizes) {
    for (const std::int64_t blocks : block_counts(size)) {
      std::vector<int> visits(size);
      walk_grid(blocks, size, [&](std::int64_t i) { ++visits[i]; });
      EXPECT_EQ(visits, std::vector<int>(size, 1)) << size << " by " << blocks;
    }
  }
  EXPECT_EQ(blocks_for(0), 1);
  EXPECT_EQ(blocks_for(kThreads + 1), 2);
  EXPECT_EQ(blocks_for(std::int64_t{1} << 40), kMostBlocks);
}

TEST(Kernels, AddSumsAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    const std::vector<float> addends = edge_floats(size, 1);
    std::vector<float> by_loop = edge_floats(size, 2);
    std::vector<float> by_kernel = by_loop;
    add_all(by_loop, addends);
    walk_grid(blocks_for(size), size, AddSums<float>{by_kernel.data(), addends.data()});
    EXPECT_TRUE(same(by_loop, by_kernel)) << size;
  }
  std::vector<std::uint64_t> sums = {~std::uint64_t{0}, 5};
  const std::vector<std::uint64_t> addends = {2, 6};
  add_all(sums, addends);
  EXPECT_EQ(sums, (std::vector<std::uint64_t>{1, 11}));
}

TEST(Kernels, AddFixedPointAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    for (const float limit : {16'000.0F, 1.0F, 0x1p-30F}) {
      for (const bool edges : {false, true}) {
        std::vector<float> values = edges ? edge_floats(size, 3) : random_floats(size, 3);
        if (size > 2) values[2] = std::nextafter(limit, 0.0F);
        if (size > 8 && edges) values[8] = -limit;
        std::vector<std::int64_t> by_loop = random_sums(size, 4);
        const std::vector<std::int64_t> before = by_loop;
        std::vector<std::int64_t> by_kernel = by_loop;
        const bool fits = add_fixed_point(by_loop, values, limit);
        const AddFixedPoint add{by_kernel.data(), values.data(), magnitude_bits(limit)};
        EXPECT_EQ(walk_grid_any(blocks_for(size), size, add), !fits) << size;
        EXPECT_EQ(by_kernel, by_loop) << size << " below " << limit;
        for (std::int64_t i = 0; i < size; ++i) {
          const bool is_added = std::abs(values[i]) < limit;
          const auto addend = is_added ? std::llrint(static_cast<double>(values[i]) * 0x1p48) : 0;
          ASSERT_EQ(static_cast<std::uint64_t>(by_loop[i]),
                    static_cast<std::uint64_t>(before[i]) + static_cast<std::uint64_t>(addend))
              << values[i];
        }
      }
    }
  }
}

TEST(FixedPoint, BecomesTheNearestDouble) {
  std::vector<std::int64_t> values = random_sums(10'000, 24);
  for (const std::int64_t edge : {std::int64_t{0}, std::int64_t{1} << 52, std::int64_t{1} << 53, std::int64_t{1} << 62,
                                  std::numeric_limits<std::int64_t>::max() - 2048}) {
    for (std::int64_t offset = -2; offset <= 2; ++offset) {
      values.push_back(edge + offset);
      values.push_back(-edge + offset);
    }
  }
  values.push_back(std::numeric_limits<std::int64_t>::max());
  values.push_back(std::numeric_limits<std::int64_t>::min());
  for (const std::int64_t value : values) ASSERT_TRUE(same(nearest_double(value), static_cast<double>(value))) << value;
}

TEST(Kernels, AddFixedPointRowsAsTheLoopDoes) {
  for (const std::int64_t width : {1, 9, 300}) {
    const std::vector<std::int64_t> index = {4, 0, 5, 2};
    const std::vector<float> limits = {16'000.0F, 2.0F, 16'000.0F, 0x1p-40F};
    const std::vector<float> rows = edge_floats(4 * width, 5);
    const std::vector<std::int64_t> before = random_sums(6 * width, 6);
    std::vector<std::int64_t> expected = before;
    bool overflows = false;
    for (std::size_t row = 0; row < index.size(); ++row) {
      const std::span<std::int64_t> sums(expected.data() + index[row] * width, width);
      const std::span<const float> values(rows.data() + row * width, width);
      if (!add_fixed_point(sums, values, limits[row])) overflows = true;
    }
    for (const std::int64_t blocks : block_counts(4, 1)) {
      std::vector<std::int64_t> sums = before;
      bool any = false;
      const AddFixedPointRows add{sums.data(), index.data(), rows.data(), limits.data(), width};
      walk_rows(blocks, 4, [&](std::int64_t row, int thread, int threads) { any = add(row, thread, threads) || any; });
      EXPECT_EQ(sums, expected) << width;
      EXPECT_EQ(any, overflows);
    }
  }
}

template <typename Sum>
void expect_equal_steps(const std::vector<Sum>& gradient, bool edges) {
  const auto size = static_cast<std::int64_t>(gradient.size());
  const AdamWConstants constants{0.7F, 0.9F, 0.1F, 0.95F, 0.05F, 0.999F, 3e-3F, 0.31F, 1e-8F};
  struct State {
    std::vector<float> master, first, second;
    std::vector<Sum> sums;
  };
  State by_loop{edges ? edge_floats(size, 7) : random_floats(size, 7), random_floats(size, 8), random_floats(size, 9),
                gradient};
  for (float& second : by_loop.second) second = std::abs(second);
  if (edges && size > 3) by_loop.second[3] = -1.0F;
  State by_kernel = by_loop;
  for (int step = 0; step < 2; ++step) {
    adamw(constants, AdamWState<Sum>{by_loop.master.data(), by_loop.first.data(), by_loop.second.data(),
                                     by_loop.sums.data(), size});
    walk_grid(blocks_for(size), size,
              AdamW<Sum>{constants, by_kernel.master.data(), by_kernel.first.data(), by_kernel.second.data(),
                         by_kernel.sums.data()});
    EXPECT_TRUE(same(by_loop.master, by_kernel.master)) << size;
    EXPECT_TRUE(same(by_loop.first, by_kernel.first)) << size;
    EXPECT_TRUE(same(by_loop.second, by_kernel.second)) << size;
    EXPECT_EQ(by_loop.sums, std::vector<Sum>(gradient.size(), 0));
    EXPECT_EQ(by_kernel.sums, by_loop.sums);
  }
}

TEST(Kernels, StepAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    expect_equal_steps(random_floats(size, 10), false);
    expect_equal_steps(edge_floats(size, 10), true);
    expect_equal_steps(random_sums(size, 11), false);
    expect_equal_steps(random_sums(size, 11), true);
  }
}

TEST(Kernels, RoundToBf16AsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    const std::vector<float> master = edge_floats(size, 12);
    std::vector<std::uint16_t> by_loop(size);
    std::vector<std::uint16_t> by_kernel(size);
    round_to_bf16(master, by_loop);
    walk_grid(blocks_for(size), size, RoundToBf16{master.data(), by_kernel.data()});
    EXPECT_EQ(by_kernel, by_loop) << size;
  }
}

TEST(Bf16, IsTheNearestAndOfTwoTheEvenOne) {
  EXPECT_EQ(to_bf16_bits(1.0F), 0x3F80);
  EXPECT_EQ(to_bf16_bits(std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(to_bf16_bits(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(to_bf16_bits(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(to_bf16_bits(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(to_bf16_bits(-std::numeric_limits<float>::infinity()), 0xFF80);
  for (const std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
    EXPECT_EQ(to_bf16_bits(std::bit_cast<float>(bits)), 0x7FC0) << bits;
  }
}

TEST(Kernels, FindWhatIsNotFiniteAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    std::vector<std::uint32_t> floats(size, 0x7F7FFFFFU);
    std::vector<std::uint16_t> halves(size, 0xFF7FU);
    EXPECT_TRUE(all_finite(floats));
    EXPECT_TRUE(all_finite(halves));
    EXPECT_FALSE(walk_grid_any(blocks_for(size), size, IsNotFinite<std::uint32_t>{floats.data()}));
    EXPECT_FALSE(walk_grid_any(blocks_for(size), size, IsNotFinite<std::uint16_t>{halves.data()}));
    for (const std::int64_t place : {std::int64_t{0}, size / 2, size - 1}) {
      if (size == 0) break;
      for (const std::uint32_t bad : {0x7F800000U, 0xFF800000U, 0x7FC00000U, 0xFFFFFFFFU}) {
        std::vector<std::uint32_t> bad_floats = floats;
        std::vector<std::uint16_t> bad_halves = halves;
        bad_floats[place] = bad;
        bad_halves[place] = static_cast<std::uint16_t>(bad >> 16);
        EXPECT_FALSE(all_finite(bad_floats));
        EXPECT_FALSE(all_finite(bad_halves));
        EXPECT_TRUE(walk_grid_any(blocks_for(size), size, IsNotFinite<std::uint32_t>{bad_floats.data()}));
        EXPECT_TRUE(walk_grid_any(blocks_for(size), size, IsNotFinite<std::uint16_t>{bad_halves.data()}));
      }
    }
  }
}

TEST(Kernels, Swap) {
  std::vector<std::uint64_t> left = {1, 2, 3};
  std::vector<std::uint64_t> right = {4, 5, 6};
  walk_grid(1, 3, kernels::Swap<std::uint64_t>{left.data(), right.data()});
  EXPECT_EQ(left, (std::vector<std::uint64_t>{4, 5, 6}));
  swap_bytes(std::as_writable_bytes(std::span(left)), std::as_writable_bytes(std::span(right)));
  EXPECT_EQ(left, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(right, (std::vector<std::uint64_t>{4, 5, 6}));
}

TEST(Probability, IsTheExponentialToTwoUnitsInTheLastPlace) {
  for (float logarithm = -87.0F; logarithm < -1e-30F; logarithm *= 0.999F) {
    const double exact = std::exp(static_cast<double>(logarithm));
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    EXPECT_LE(std::fabs(probability(logarithm) - exact), 2 * unit) << logarithm;
  }
  EXPECT_EQ(probability(0.0F), 1.0F);
  EXPECT_EQ(probability(-0.0F), 1.0F);
}

TEST(Probability, IsZeroWhereItsLogarithmIsFarBelowZero) {
  EXPECT_EQ(probability(std::nextafter(-87.0F, -88.0F)), 0.0F);
  EXPECT_EQ(probability(-std::numeric_limits<float>::infinity()), 0.0F);
}

// A GPU makes 0x7FFFFFFF of what is not a number, a CPU 0xFFC00000.
TEST(Probability, OfWhatIsNotANumberIsNotOneEither) {
  for (const std::uint32_t bits : {0x7FFFFFFFU, 0xFFC00000U, 0x7FC00000U, 0x7FC00001U, 0x7F800001U, 0xFFFFFFFFU}) {
    EXPECT_TRUE(std::isnan(probability(std::bit_cast<float>(bits)))) << std::hex << bits;
  }
}

TEST(Philox, IsThatOfTheRandomStreams) {
  const RandomStream stream{0x123456789ABCDEF0, 0xFEDCBA9876543210};
  for (const std::uint64_t counter : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 33, ~std::uint64_t{0}}) {
    const Philox random(stream.seed(), stream.stream(), counter);
    const auto expected = philox(
        {0x9ABCDEF0, 0x12345678},
        {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0x76543210, 0xFEDCBA98});
    for (int half = 0; half < kHalfWords; ++half) {
      EXPECT_EQ(random.half_word(half), expected[half / 2] >> (half % 2 * 16) & 0xFFFFU);
    }
  }
}

}  // namespace
}  // namespace everstep::trainer::kernels
