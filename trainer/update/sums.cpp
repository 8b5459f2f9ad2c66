#include "trainer/update/sums.h"

#include <cstdint>

#include "trainer/update/loops.h"

namespace everstep::trainer {

void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) {
  if (accumulation == Accumulation::kFloat) {
    add_all(target.as<float>(), addend.as<const float>());
  } else {
    add_all(target.as<std::uint64_t>(), addend.as<const std::uint64_t>());
  }
}

}  // namespace everstep::trainer
