#include "trainer/update/learning_rate.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/text.h"

namespace everstep::trainer {

double LearningRate::at(std::int64_t samples) const {
  EVERSTEP_CHECK(samples >= 0, "a negative number of samples");
  if (samples < warmup_samples) return peak * static_cast<double>(samples) / static_cast<double>(warmup_samples);
  if (decay == Decay::kConstant) return peak;
  if (samples >= total_samples) return floor;
  const double progress =
      static_cast<double>(samples - warmup_samples) / static_cast<double>(total_samples - warmup_samples);
  const double remaining = decay == Decay::kLinear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return floor + (peak - floor) * remaining;
}

Status check(const LearningRate& schedule) {
  if (!(std::isfinite(schedule.peak) && schedule.peak > 0)) {
    return invalid_argument("the learning rate must be above 0 and finite, not " + shortest_text(schedule.peak));
  }
  if (!(schedule.floor >= 0 && schedule.floor <= schedule.peak)) {
    return invalid_argument("the final learning rate must lie between 0 and the peak of " +
                            shortest_text(schedule.peak) + ", not be " + shortest_text(schedule.floor));
  }
  if (schedule.total_samples < 1 || schedule.warmup_samples < 0 || schedule.warmup_samples > schedule.total_samples) {
    return invalid_argument("a warm-up of " + std::to_string(schedule.warmup_samples) + " samples does not fit into " +
                            std::to_string(schedule.total_samples));
  }
  return {};
}

}  // namespace everstep::trainer
