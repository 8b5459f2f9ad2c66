#include "trainer/update/fixed_point.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "trainer/kernels/clones.h"

namespace everstep::trainer {
namespace {

using kernels::kRoundedBelow;
using kernels::magnitude_bits;
using kernels::rounded_fixed_point;
using kernels::wrapping_sum;

// As if all values were small.
EVERSTEP_CLONES std::uint32_t add_rounded(std::int64_t* sums, const float* values, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = wrapping_sum(sums[i], rounded_fixed_point(values[i]));
    largest = std::max(largest, magnitude_bits(values[i]));
  }
  return largest;
}

// Rare, so that they cost the others nothing: what add_rounded made of them is taken back.
void replace_large(std::span<std::int64_t> sums, std::span<const float> values, std::uint32_t limit_bits) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (magnitude_bits(values[i]) < std::min(magnitude_bits(kRoundedBelow), limit_bits)) continue;
    const std::uint64_t addend = kernels::fixed_point_addend(values[i], limit_bits);
    sums[i] = wrapping_sum(sums[i], addend - rounded_fixed_point(values[i]));
  }
}

}  // namespace

bool add_fixed_point(std::span<std::int64_t> sums, std::span<const float> values, float limit) {
  EVERSTEP_CHECK(sums.size() == values.size(), "as many sums as values");
  EVERSTEP_CHECK(limit <= fixed_point_limit(1), "a limit that 64 bits can hold");
  const std::uint32_t largest = add_rounded(sums.data(), values.data(), values.size());
  const bool all_fit = largest < magnitude_bits(limit);
  if (!all_fit || largest >= magnitude_bits(kRoundedBelow)) replace_large(sums, values, magnitude_bits(limit));
  return all_fit;
}

}  // namespace everstep::trainer
