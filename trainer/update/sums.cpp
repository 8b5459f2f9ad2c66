#include "trainer/update/sums.h"

#include <cstdint>
#include <span>

#include "base/check.h"

namespace everstep::trainer {
namespace {

template <typename T>
void add(std::span<T> target, std::span<const T> addend) {
  for (std::size_t i = 0; i < target.size(); ++i) target[i] += addend[i];
}

}  // namespace

void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) {
  EVERSTEP_CHECK(target.size == addend.size, "sums of different sizes");
  if (accumulation == Accumulation::kFloat) {
    add<float>(target.as<float>(), addend.as<const float>());
  } else {
    // Unsigned, because a sum that wraps has overflowed elsewhere already and must not be undefined behaviour here.
    add<std::uint64_t>(target.as<std::uint64_t>(), addend.as<const std::uint64_t>());
  }
}

}  // namespace everstep::trainer
