#pragma once

#include <cstdint>

namespace everstep::trainer {

// What CPUID says of AMX, the matrix unit that oneDNN computes bf16 products with.
struct AmxFacts {
  bool announced = false;          // the CPU has tiles
  std::uint32_t highest_leaf = 0;  // leaves above it cannot be asked for
  std::uint32_t palettes = 0;      // leaf 1Dh: how many ways there are to divide the unit into tiles
};

AmxFacts read_amx_facts();

// Some virtual machines announce AMX and hide how its tiles are divided. oneDNN then configures none, and its first
// bf16 product ends the process with SIGILL.
bool amx_would_crash(const AmxFacts& facts);

// Where AMX would crash, keeps oneDNN to AVX-512, unless ONEDNN_MAX_CPU_ISA says what to use. To be called before
// LibTorch multiplies anything: oneDNN reads that variable once.
void avoid_amx_that_would_crash();

}  // namespace everstep::trainer
