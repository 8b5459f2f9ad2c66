#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/tick.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {

// How far the provisional steps of a schedule have come while it is played.
class TrialSteps {
 public:
  // The schedule must outlive it.
  explicit TrialSteps(const Schedule& schedule);

  // The worker has copied the sum of one of its chunks.
  void copied(int worker, std::int64_t window, Tick now);

  // The worker has come to its part of the window's step. Whether it had not before.
  bool come_to(int worker, std::int64_t window);

  // When all is there that the stage's provisional weights, which a window makes for the next one, are made of;
  // nothing: not known yet.
  std::optional<Tick> complete_at(std::int64_t window, int stage) const;

 private:
  // A mirror group's part of the step of a window.
  struct Part {
    int copies = 0;
    Tick copied = 0;  // when the last of them was made
  };

  std::size_t part_of(std::int64_t window, int device) const;
  int copies_wanted(int device) const;

  const Schedule& schedule_;
  std::vector<Part> parts_;            // by slice and mirror group
  std::vector<std::int64_t> stepped_;  // by worker: windows to whose step it has come
};

}  // namespace everstep::scheduler
