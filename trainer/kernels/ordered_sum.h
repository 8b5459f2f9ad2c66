#pragma once

#include "trainer/kernels/adamw.h"

// Sums whose order nothing but the number of terms decides, and which vector code and a GPU can both follow: chunks of
// 4096 terms, in each eight partial sums (term i of the chunk in sum i mod 8) that are joined from left to right; then
// the chunks from left to right.
namespace everstep::trainer::kernels {

inline constexpr std::int64_t kSumChunk = 4096;
inline constexpr int kSumLanes = 8;

EVERSTEP_HOST_DEVICE constexpr std::int64_t sum_chunks(std::int64_t terms) {
  return (terms + kSumChunk - 1) / kSumChunk;
}

EVERSTEP_HOST_DEVICE double joined(const double* values, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

// The sum of a chunk's terms [first, end), in one thread: the lanes side by side.
template <typename Term>
EVERSTEP_HOST_DEVICE double chunk_sum(const Term& term, std::int64_t first, std::int64_t end) {
  double lanes[kSumLanes] = {};
  std::int64_t i = first;
  for (; i + kSumLanes <= end; i += kSumLanes) {
    double terms[kSumLanes];
    for (int lane = 0; lane < kSumLanes; ++lane) terms[lane] = term(i + lane);
    for (int lane = 0; lane < kSumLanes; ++lane) lanes[lane] += terms[lane];
  }
  for (int lane = 0; i < end; ++i, ++lane) lanes[lane] += term(i);
  return joined(lanes, kSumLanes);
}

// The whole sum, in one thread.
template <typename Term>
EVERSTEP_HOST_DEVICE double ordered_sum(const Term& term, std::int64_t count) {
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kSumChunk) {
    const std::int64_t end = first + kSumChunk < count ? first + kSumChunk : count;
    sum += chunk_sum(term, first, end);
  }
  return sum;
}

// The sum of a chunk by a block of threads, in three steps with a barrier of the block after each: gather() and
// add_lanes() by every thread, then total() by one.
struct ChunkByBlock {
  double* terms;  // of the block: kSumChunk of them
  double* lanes;  // and kSumLanes

  template <typename Term>
  EVERSTEP_HOST_DEVICE void gather(const Term& term, std::int64_t first, std::int64_t end, int thread,
                                   int threads) const {
    for (std::int64_t i = first + thread; i < end; i += threads) terms[i - first] = term(i);
  }

  EVERSTEP_HOST_DEVICE void add_lanes(std::int64_t count, int thread) const {
    if (thread >= kSumLanes) return;
    double sum = 0;
    for (std::int64_t i = thread; i < count; i += kSumLanes) sum += terms[i];
    lanes[thread] = sum;
  }

  EVERSTEP_HOST_DEVICE double total() const { return joined(lanes, kSumLanes); }
};

// Term of a gradient's norm.
template <typename Sum>
struct SquareOf {
  const Sum* sums;

  EVERSTEP_HOST_DEVICE double operator()(std::int64_t i) const {
    const double value = gradient_of(sums[i]);
    return value * value;
  }
};

}  // namespace everstep::trainer::kernels
