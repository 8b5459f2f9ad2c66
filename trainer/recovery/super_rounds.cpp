#include "trainer/recovery/super_rounds.h"

#include <algorithm>

#include "base/check.h"

namespace everstep::trainer {

SuperRounds::SuperRounds(Position begin, std::int64_t window, std::int64_t minibatches)
    : window_(window),
      minibatches_(minibatches),
      first_window_(begin.value / window),
      first_minibatch_(begin.value % window),
      first_rounds_(rounds_in(window - first_minibatch_)),
      later_rounds_(rounds_in(window)) {}

std::int64_t SuperRounds::rounds_in(std::int64_t minibatches) const {
  return (minibatches + minibatches_ - 1) / minibatches_;
}

std::int64_t SuperRounds::number_of(const Place& place) const {
  if (place.window < first_window_) return -1;
  if (place.window == first_window_) return place.round;
  return first_rounds_ + (place.window - first_window_ - 1) * later_rounds_ + place.round;
}

std::int64_t SuperRounds::last_of(std::int64_t window) const { return number_of({window + 1, 0}) - 1; }

SuperRounds::Place SuperRounds::place_of(std::int64_t number) const {
  EVERSTEP_CHECK(number >= 0, "super-rounds are numbered from 0");
  if (number < first_rounds_) return {first_window_, static_cast<int>(number)};
  const std::int64_t later = number - first_rounds_;
  return {first_window_ + 1 + later / later_rounds_, static_cast<int>(later % later_rounds_)};
}

bool SuperRounds::ends_window(std::int64_t number) const { return number == last_of(place_of(number).window); }

Position SuperRounds::end_of(std::int64_t number) const {
  const Place place = place_of(number);
  const std::int64_t first = place.window == first_window_ ? first_minibatch_ : 0;
  return {place.window * window_ + std::min(window_, first + (place.round + 1) * minibatches_)};
}

}  // namespace everstep::trainer
