#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

// Sum is float, or std::uint64_t for fixed point: a sum that wraps has overflowed elsewhere already.
template <typename Sum>
struct AddSums {
  Sum* sums;
  const Sum* addends;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const { sums[i] += addends[i]; }
};

template <typename Word>
struct Swap {
  Word* left;
  Word* right;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const Word kept = left[i];
    left[i] = right[i];
    right[i] = kept;
  }
};

}  // namespace everstep::trainer::kernels
