#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/random.h"
#include "trainer/kernels/grid.h"

// A GPU's kernels on the CPU: what nvcc compiles for each thread of a launch, called for one thread after the other.
namespace everstep::trainer::kernels {

// Around a vector, a chunk of a sum, a block of threads; with and without an end that fills none.
inline const std::vector<std::int64_t> kSizes = {0,   1,   2,    7,    8,    9,    127,  128,  129,   255,
                                                 256, 257, 1003, 4095, 4096, 4097, 8191, 8193, 70'001};

// The launch's own number of blocks, and fewer: then threads walk on.
inline std::vector<std::int64_t> block_counts(std::int64_t items, std::int64_t items_per_block = kThreads) {
  return {blocks_for(items, items_per_block), 1, 3};
}

template <typename Call>
void for_each_seat(std::int64_t blocks, const Call& call) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (int thread = 0; thread < kThreads; ++thread) call(Seat{block, blocks, thread, kThreads});
  }
}

template <typename Work>
void walk_grid(std::int64_t blocks, std::int64_t count, const Work& work) {
  for_each_seat(blocks, [&](const Seat& seat) { walk(seat, count, work); });
}

template <typename Work>
bool walk_grid_any(std::int64_t blocks, std::int64_t count, const Work& work) {
  bool any = false;
  for_each_seat(blocks, [&](const Seat& seat) { any = walk_any(seat, count, work) || any; });
  return any;
}

// A block per row: calls work(row, thread, threads).
template <typename Work>
void walk_rows(std::int64_t blocks, std::int64_t rows, const Work& work) {
  for_each_seat(blocks, [&](const Seat& seat) {
    for (std::int64_t row = seat.block; row < rows; row += seat.blocks) work(row, seat.thread, seat.threads);
  });
}

// Numbers of all magnitudes, both signs.
inline std::vector<float> random_floats(std::int64_t count, std::uint64_t stream, int lowest = -60, int highest = 3) {
  const RandomStream random{17, stream};
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = static_cast<std::uint64_t>(2 * i);
    const int exponent = lowest + static_cast<int>(random.below(draw, static_cast<std::uint64_t>(highest - lowest)));
    values.push_back(static_cast<float>(std::ldexp(2 * random.uniform(draw + 1) - 1, exponent)));
  }
  return values;
}

// The same with the numbers at which code goes wrong among them.
inline std::vector<float> edge_floats(std::int64_t count, std::uint64_t stream) {
  using Limits = std::numeric_limits<float>;
  const float edges[] = {0.0F,
                         -0.0F,
                         Limits::denorm_min(),
                         -Limits::denorm_min(),
                         Limits::min(),
                         -Limits::min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         std::bit_cast<float>(0xFFFFFFFFU),
                         std::bit_cast<float>(0x7F800001U),
                         8.0F,
                         std::nextafter(8.0F, 0.0F),
                         -8.0F,
                         88.0F,
                         -87.5F,
                         1.0F,
                         std::bit_cast<float>(0x3F808000U),   // half way between two of bf16
                         std::bit_cast<float>(0x3F818000U)};  // and between the next two
  std::vector<float> values = random_floats(count, stream);
  const RandomStream random{18, stream};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t draw = random.below(i, 3 * std::size(edges));
    if (draw < std::size(edges)) values[i] = edges[draw];
  }
  return values;
}

// Equal in every bit; of NaNs only that they are: which payload two of them leave, the order of operands decides.
inline bool same(float left, float right) {
  return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right) ||
         (std::isnan(left) && std::isnan(right));
}

inline bool same(double left, double right) {
  return std::bit_cast<std::uint64_t>(left) == std::bit_cast<std::uint64_t>(right) ||
         (std::isnan(left) && std::isnan(right));
}

inline bool same(std::span<const float> left, std::span<const float> right) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!same(left[i], right[i])) return false;
  }
  return left.size() == right.size();
}

}  // namespace everstep::trainer::kernels
