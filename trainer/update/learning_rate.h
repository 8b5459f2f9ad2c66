#pragma once

#include <cstdint>

#include "base/result.h"

namespace everstep::trainer {

enum class Decay : std::uint8_t { kConstant, kLinear, kCosine };

// The learning rate as a pure function of consumed samples (sequences), so that it does not depend on the size of an
// update or on restarts: linear warm-up from 0 to `peak`, then decay to `floor` at `total_samples`, constant after.
struct LearningRate {
  double peak = 3e-4;
  double floor = 3e-5;
  Decay decay = Decay::kCosine;
  std::int64_t warmup_samples = 0;
  std::int64_t total_samples = 1;

  bool operator==(const LearningRate&) const = default;

  // For the update that brings the consumed samples to `samples`.
  double at(std::int64_t samples) const;
};

Status check(const LearningRate& schedule);

}  // namespace everstep::trainer
