#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.h"

namespace everstep::trainer {

// Numbers the super-rounds of one run (one train() call, whatever it drains for in between): 0, 1, … from where it
// began. Each window has as many as it takes to deal its minibatches, the first one only those it had left; a window's
// last super-round may be a partial one. The same on all workers. In names of stops, round means a super-round of the
// run.
class SuperRounds {
 public:
  // A run that begins at `begin`, with windows of `window` minibatches and super-rounds of `minibatches`
  // (scheduler::super_round_size()).
  SuperRounds(Position begin, std::int64_t window, std::int64_t minibatches);

  struct Place {
    std::int64_t window = 0;
    int round = 0;  // as ops count it: from where the run starts that window

    auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  // −1 for windows before the first.
  std::int64_t number_of(const Place& place) const;
  std::int64_t last_of(std::int64_t window) const;
  Place place_of(std::int64_t number) const;  // number ≥ 0
  bool ends_window(std::int64_t number) const;

  // Where training goes on after it.
  Position end_of(std::int64_t number) const;

 private:
  std::int64_t rounds_in(std::int64_t minibatches) const;

  std::int64_t window_;
  std::int64_t minibatches_;
  std::int64_t first_window_;
  std::int64_t first_minibatch_;
  std::int64_t first_rounds_;
  std::int64_t later_rounds_;
};

}  // namespace everstep::trainer
