#include "tests/trainer/handover/stop_gate.h"

#include <algorithm>

#include "base/check.h"

namespace everstep::trainer {

void StopGate::stop_at_window_end(WindowStop wish) {
  const std::scoped_lock lock(mutex_);
  wish_ = std::max(wish_, wish);
}

std::int64_t StopGate::promise() {
  const std::scoped_lock lock(mutex_);
  if (!promised_) promised_ = started_;
  return *promised_;
}

void StopGate::stop_after(std::int64_t round) {
  {
    const std::scoped_lock lock(mutex_);
    EVERSTEP_CHECK(round >= started_, "a stop before what was started");
    if (!last_) last_ = round;
    EVERSTEP_CHECK(*last_ == round, "two stops of one run");
  }
  changed_.notify_all();
}

std::int64_t StopGate::started() const {
  const std::scoped_lock lock(mutex_);
  return started_;
}

WindowStop StopGate::at_window_end() {
  const std::scoped_lock lock(mutex_);
  return wish_;
}

bool StopGate::start_round(std::int64_t round, std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  const auto is_free = [&] { return !promised_ || round <= *promised_ + 1; };
  if (!last_ && !is_free()) changed_.wait_for(lock, wait, [&] { return last_.has_value(); });
  if (last_ ? round > *last_ : !is_free()) return false;
  started_ = std::max(started_, round);
  return true;
}

std::optional<std::int64_t> StopGate::last_round() {
  const std::scoped_lock lock(mutex_);
  return last_;
}

}  // namespace everstep::trainer
