#include "trainer/torch/amx.h"

#include <cstdlib>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kTileLeaf = 0x1D;

}  // namespace

#ifdef __x86_64__
AmxFacts read_amx_facts() {
  constexpr std::uint32_t kFeatureLeaf = 7;
  constexpr std::uint32_t kAmxTileBit = 1U << 24;
  AmxFacts facts;
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0) facts.highest_leaf = eax;
  if (__get_cpuid_count(kFeatureLeaf, 0, &eax, &ebx, &ecx, &edx) != 0) facts.announced = (edx & kAmxTileBit) != 0;
  if (__get_cpuid_count(kTileLeaf, 0, &eax, &ebx, &ecx, &edx) != 0) facts.palettes = eax;
  return facts;
}
#else
AmxFacts read_amx_facts() { return {}; }
#endif

bool amx_would_crash(const AmxFacts& facts) {
  return facts.announced && (facts.highest_leaf < kTileLeaf || facts.palettes == 0);
}

void avoid_amx_that_would_crash() {
  if (amx_would_crash(read_amx_facts())) ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);
}

}  // namespace everstep::trainer
