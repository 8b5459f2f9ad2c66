#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "trainer/stop_requests.h"

namespace everstep::launcher {

// What the loop of a worker wants of its training thread.
class RunStops final : public trainer::StopRequests {
 public:
  // ---- from the loop ----
  void stop_at_window(trainer::WindowStop how);

  // The super-round that was started last, −1 if none was; from now on at most one more is, until stop_at_round().
  std::int64_t promise();
  void stop_at_round(std::int64_t round);

  // The run is being broken off: nobody waits any more.
  void give_up();

  // ---- from the training thread ----
  trainer::WindowStop at_window_end() override;
  bool start_round(std::int64_t round, std::chrono::milliseconds wait) override;
  std::optional<std::int64_t> last_round() override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  trainer::WindowStop window_ = trainer::WindowStop::kNo;
  std::int64_t started_ = -1;
  std::optional<std::int64_t> promised_;
  std::optional<std::int64_t> last_;
  bool is_over_ = false;
};

}  // namespace everstep::launcher
