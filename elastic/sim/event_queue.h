#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/tick.h"

namespace everstep::elastic::sim {

inline constexpr Tick kSecond = kTicksPerSecond;

// The simulated time and all that is still to happen. What is due at the same time happens in the order it was asked
// for, so that a seed has one history.
class EventQueue {
 public:
  Tick now() const { return now_; }

  void at(Tick when, std::function<void()> action);
  void after(Tick delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

  // Lets the next thing happen. False: there is nothing left.
  bool step();

  std::uint64_t events() const { return events_; }  // so far

 private:
  struct Event {
    Tick when = 0;
    std::uint64_t number = 0;
    std::function<void()> action;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  Tick now_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace everstep::elastic::sim
