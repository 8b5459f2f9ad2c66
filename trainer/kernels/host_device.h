#pragma once

#include <cstdint>

// The functors of this room are one element's work each: what the CPU's loops, the GPU's kernels and the tests that
// walk a GPU's grid on the CPU all call, so that every device computes the same bits (a NaN's payload apart). They use
// plain IEEE operations alone, in a fixed order. g++ compiles them with -ffp-contract=off, nvcc with -fmad=false
// -ftz=false -prec-div=true -prec-sqrt=true; a test reads the PTX.
//
// Always inlined, because a loop is made of vector instructions only around code that the compiler sees.
#ifdef __CUDACC__
#define EVERSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define EVERSTEP_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace everstep::trainer::kernels {

// std::bit_cast, which nvcc has for the host alone.
template <typename To, typename From>
EVERSTEP_HOST_DEVICE constexpr To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

// Magnitudes order like these bits, with infinity and NaN above all others.
EVERSTEP_HOST_DEVICE constexpr std::uint32_t magnitude_bits(float value) {
  return bits_as<std::uint32_t>(value) & 0x7FFFFFFFU;
}

}  // namespace everstep::trainer::kernels
