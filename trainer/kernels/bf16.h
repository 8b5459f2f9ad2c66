#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

// The upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

EVERSTEP_HOST_DEVICE float to_float(float value) { return value; }
EVERSTEP_HOST_DEVICE float to_float(Bf16 value) { return bits_as<float>(static_cast<std::uint32_t>(value.bits) << 16); }

// To nearest, ties to even; every NaN becomes the same one.
EVERSTEP_HOST_DEVICE std::uint16_t to_bf16_bits(float value) {
  const auto bits = bits_as<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>(magnitude_bits(value) > 0x7F800000U ? 0x7FC0U : rounded);
}

EVERSTEP_HOST_DEVICE void store(float value, float& target) { target = value; }
EVERSTEP_HOST_DEVICE void store(float value, Bf16& target) { target.bits = to_bf16_bits(value); }

// A master's weights as the model computes with them.
struct RoundToBf16 {
  const float* master;
  std::uint16_t* weights;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const { weights[i] = to_bf16_bits(master[i]); }
};

}  // namespace everstep::trainer::kernels
