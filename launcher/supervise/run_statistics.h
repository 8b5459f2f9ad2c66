#pragma once

#include <cstdint>
#include <vector>

#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

struct Rate {
  double tokens_per_s = 0;
  double busy = 0;

  bool operator==(const Rate&) const = default;
};

// How fast a run is and was, from the reports of its updates.
class RunStatistics {
 public:
  RunStatistics(Tick start, std::int64_t tokens_per_step) : start_(start), tokens_per_step_(tokens_per_step) {}

  void add(const trainer::StepReport& report);

  std::int64_t tokens() const { return std::ssize(updates_) * tokens_per_step_; }
  double seconds() const;  // from the start to the last update

  // From the last update but one to the last.
  double last_seconds() const;
  double last_tokens_per_s() const;

  // Over the last few updates: what a guess of the time that is left builds on.
  double recent_seconds_per_step() const;

  // Over the steady part of the run. The first tenth of the updates, at least one and at most ten, is left out, because
  // the pipeline fills and the processes warm up there; so is the last update, for which the pipeline drains, if three
  // or more remain.
  Rate steady() const;

 private:
  struct Update {
    Tick at = 0;
    double busy = 0;
  };

  Tick end_of(std::size_t updates) const { return updates == 0 ? start_ : updates_[updates - 1].at; }
  Rate between(std::size_t first, std::size_t last) const;

  Tick start_;
  std::int64_t tokens_per_step_;
  std::vector<Update> updates_;
};

}  // namespace everstep::launcher
