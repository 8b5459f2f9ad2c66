#include "launcher/elastic/run_stops.h"

#include <algorithm>

namespace everstep::launcher {

using trainer::WindowStop;

void RunStops::stop_at_window(WindowStop how) {
  const std::scoped_lock lock(mutex_);
  window_ = std::max(window_, how);
}

std::int64_t RunStops::promise() {
  const std::scoped_lock lock(mutex_);
  if (!promised_) promised_ = started_;
  return *promised_;
}

void RunStops::stop_at_round(std::int64_t round) {
  {
    const std::scoped_lock lock(mutex_);
    if (!last_) last_ = round;
  }
  changed_.notify_all();
}

void RunStops::give_up() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
}

WindowStop RunStops::at_window_end() {
  const std::scoped_lock lock(mutex_);
  return window_;
}

bool RunStops::start_round(std::int64_t round, std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  const auto may_decide = [&] { return is_over_ || !promised_ || round <= *promised_ + 1 || last_; };
  if (!changed_.wait_for(lock, wait, may_decide) || is_over_) return false;
  if (last_ && round > *last_) return false;
  started_ = std::max(started_, round);
  return true;
}

std::optional<std::int64_t> RunStops::last_round() {
  const std::scoped_lock lock(mutex_);
  return last_;
}

}  // namespace everstep::launcher
