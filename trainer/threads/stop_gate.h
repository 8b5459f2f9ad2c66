#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "trainer/loop/stop_requests.h"

namespace everstep::trainer {

// Passes requests to stop from other threads to a training thread. One per run.
class StopGate final : public StopRequests {
 public:
  // Wishes of other threads. The strongest one holds.
  void stop_at_window_end(WindowStop wish);

  // The super-round that was started last, −1 if none was. Returns at once, whatever the training thread is waiting
  // for; from now on it goes at most one further until it is told where to end. Asked again, it answers the same.
  std::int64_t promise();

  // Tells the last super-round: at least the promised one + 1. Told again, it must be the same.
  void stop_after(std::int64_t round);

  // The run is being broken off: nobody waits here any more.
  void give_up();

  // The super-round that was started last, without a promise.
  std::int64_t started() const;

  WindowStop at_window_end() override;
  bool start_round(std::int64_t round, std::chrono::milliseconds wait) override;
  std::optional<std::int64_t> certain_round() override;
  std::optional<std::int64_t> last_round() override;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  WindowStop wish_ = WindowStop::kNo;
  std::int64_t started_ = -1;
  std::optional<std::int64_t> promised_;
  std::optional<std::int64_t> last_;
  bool is_over_ = false;
};

}  // namespace everstep::trainer
