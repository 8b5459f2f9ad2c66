#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace everstep::bench {

// The losses of two trainings that differ in their schedule alone, update by update.
struct LossPair {
  std::uint64_t seed = 0;
  std::vector<double> synchronous;
  std::vector<double> amdp;
};

inline constexpr int kFinalUpdates = 50;

// The mean over the last kFinalUpdates updates, or over all if there are fewer.
double final_loss(const std::vector<double>& losses);

// An SVG document: the curves of all pairs above, how far AMDP's lie from the others below.
std::string draw_losses(const std::vector<LossPair>& pairs, const std::string& note);

}  // namespace everstep::bench
