#include "scheduler/clockwork.h"

#include <algorithm>

#include "base/check.h"

namespace everstep::scheduler {
namespace {

// Two ops of a device would share a slot if the stride plus or minus half the distance of two pipelines had a factor in
// common with their number.
int stride_of(int depth, int pipelines) {
  const int half = depth / pipelines / 2;
  for (int stride = 0; stride < pipelines; ++stride) {
    const bool free_of_collisions = std::gcd(stride - half, pipelines) == 1 && std::gcd(stride + half, pipelines) == 1;
    if (pipelines == 1 || free_of_collisions) return stride;
  }
  EVERSTEP_CHECK(false, "every shape has a stride");
}

}  // namespace

std::vector<int> clockwork_pipelines(int depth) {
  std::vector<int> all;
  for (int pipelines = depth / 2; pipelines > 1; --pipelines) {
    if (is_clockwork_shape(depth, pipelines)) all.push_back(pipelines);
  }
  all.push_back(1);
  return all;
}

Clock::Clock(int depth, int pipelines, int lag)
    : depth_(depth), pipelines_(pipelines), lag_(lag), stride_(stride_of(depth, pipelines)) {
  EVERSTEP_CHECK(is_clockwork_shape(depth, pipelines) && lag >= 0, "a clock for a shape that has none");
}

int Clock::lagging_rounds() const {
  const Slot last_before_update = update(0);
  return last_before_update < 0 ? 0 : static_cast<int>(last_before_update / round_length() + 1);
}

bool Clock::two_windows_meet(int device, int stage) const {
  return backward(pipeline_at(device, stage), 0, stage) <= update(0);
}

ProvisionalRange Clock::provisional_range(int rounds) const {
  if (lagging_rounds() == 0) return {1, 0};                          // nobody would read it
  const Slot last_of_round = latest_phase() + Slot{2} * depth_ - 1;  // the last backward of round 0
  const Slot fewest = std::max(Slot{1}, last_of_round / round_length());
  const Slot first_closed = Slot{depth_};  // the first backward of round 0 of all
  const Slot update_before = update(0);
  // The smallest round whose first backward comes after the update.
  const Slot earliest = update_before < first_closed ? 0 : (update_before - first_closed) / round_length() + 1;
  return {static_cast<int>(fewest), static_cast<int>(rounds - 1 - earliest)};
}

int Clock::largest_lag(int window, int width) const {
  const Slot super_round = Slot{pipelines_} * width;
  const Slot rounds = (window + super_round - 1) / super_round;
  const Slot full_rounds = window / super_round;
  const Slot before_second_window = round_length() * rounds - 1;
  const Slot before_first_reduce = round_length() * (full_rounds - 1) + depth_ - 1;
  const Slot without_lag = update(0) - lag_;
  constexpr Slot kMost = 1'000'000;
  return static_cast<int>(std::min({before_second_window - without_lag, before_first_reduce - without_lag, kMost}));
}

}  // namespace everstep::scheduler
