#include "trainer/threads/stop_gate.h"

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

void StopGate::give_up() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
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
  const auto is_decided = [&] { return is_over_ || last_ || !promised_ || round <= *promised_ + 1; };
  if (!changed_.wait_for(lock, wait, is_decided) || is_over_) return false;
  if (last_ && round > *last_) return false;
  started_ = std::max(started_, round);
  return true;
}

// Whoever asks for a promise from now on hears of `started_`, and stops no earlier than one after it.
std::optional<std::int64_t> StopGate::certain_round() {
  const std::scoped_lock lock(mutex_);
  return last_ ? *last_ : promised_.value_or(started_) + 1;
}

std::optional<std::int64_t> StopGate::last_round() {
  const std::scoped_lock lock(mutex_);
  return last_;
}

}  // namespace everstep::trainer
