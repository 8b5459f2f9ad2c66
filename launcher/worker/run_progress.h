#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/tick.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// How the training of this process goes, over all generations: for the leader's deadlines, status and metrics. For any
// thread.
class RunProgress {
 public:
  explicit RunProgress(std::int64_t tokens_per_step) : tokens_per_step_(tokens_per_step) {}

  void begin_generation();
  void on_step(const trainer::StepReport& report);
  void on_validation(double loss);
  // A change of membership cost so long without training, and so many of `window` minibatches are run again. Planned:
  // nobody was lost.
  void on_change(double stall_seconds, std::int64_t redone, std::int64_t window, bool was_planned);

  struct Now {
    trainer::StepReport last;
    std::optional<double> validation_loss;  // the last that was measured
    Tick window_time = 0;                   // median of the last updates; 0: not known
    double tokens_per_second = 0;
    std::int64_t tokens = 0;
    double goodput = 1;  // share of the time since the first update that went into what counts
    double stall_seconds = 0;
    std::int64_t redone = 0;
  };
  Now now() const;

  // How fast workers are in this generation: medians over its last updates.
  struct Speeds {
    int updates = 0;                             // so many
    Tick update_time = 0;                        // 0: not known
    std::vector<std::vector<Tick>> stage_times;  // as in StepReport
    double switch_seconds = 0;                   // what the last planned change cost; 0: not known
  };
  Speeds speeds() const;

 private:
  static constexpr std::size_t kKept = 16;
  static constexpr std::size_t kUpdatesTimed = 8;

  Tick window_time() const;

  const std::int64_t tokens_per_step_;
  mutable std::mutex mutex_;
  std::optional<trainer::StepReport> last_;
  std::optional<double> validation_loss_;
  Tick first_update_ = 0;
  std::optional<Tick> previous_update_;  // of this generation
  std::vector<Tick> recent_;             // times of updates, oldest first
  struct TimedUpdate {
    Tick time = 0;  // since the one before
    std::vector<std::vector<Tick>> stage_times;
  };
  std::vector<TimedUpdate> timed_;  // of this generation, oldest first
  double switch_ = 0;               // seconds
  std::int64_t updates_ = 0;
  double stalled_ = 0;
  double repeated_ = 0;  // seconds
  std::int64_t redone_ = 0;
};

}  // namespace everstep::launcher
