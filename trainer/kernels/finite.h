#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

// Infinities and NaNs are the numbers whose exponent is all ones: the largest magnitudes, as bits.
template <typename Bits>
inline constexpr Bits kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
template <typename Bits>
inline constexpr Bits kInfinity{};
template <>
inline constexpr std::uint16_t kInfinity<std::uint16_t> = 0x7F80U;  // bf16
template <>
inline constexpr std::uint32_t kInfinity<std::uint32_t> = 0x7F800000U;  // fp32

// Returns whether number i, of which it sees the bits, is Inf or NaN.
template <typename Bits>
struct IsNotFinite {
  const Bits* numbers;

  EVERSTEP_HOST_DEVICE bool operator()(std::int64_t i) const {
    return static_cast<Bits>(numbers[i] & kMagnitude<Bits>) >= kInfinity<Bits>;
  }
};

}  // namespace everstep::trainer::kernels
