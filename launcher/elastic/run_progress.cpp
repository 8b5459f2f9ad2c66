#include "launcher/elastic/run_progress.h"

#include <algorithm>

namespace everstep::launcher {

void RunProgress::begin_generation() {
  const std::scoped_lock lock(mutex_);
  previous_update_.reset();
}

void RunProgress::on_step(const trainer::StepReport& report) {
  const std::scoped_lock lock(mutex_);
  if (previous_update_) {
    recent_.push_back(report.at - *previous_update_);
    if (recent_.size() > kKept) recent_.erase(recent_.begin());
  }
  if (first_update_ == 0) first_update_ = report.at;
  previous_update_ = report.at;
  last_ = report;
  ++updates_;
}

void RunProgress::on_change(double stall_seconds, std::int64_t redone, std::int64_t window) {
  const std::scoped_lock lock(mutex_);
  stalled_ += stall_seconds;
  redone_ += redone;
  repeated_ += to_seconds(window_time()) * static_cast<double>(redone) / static_cast<double>(window);
}

Tick RunProgress::window_time() const {
  if (recent_.empty()) return 0;
  std::vector<Tick> sorted = recent_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

RunProgress::Now RunProgress::now() const {
  const std::scoped_lock lock(mutex_);
  Now now;
  now.last = last_.value_or(trainer::StepReport{});
  now.window_time = window_time();
  if (now.window_time > 0) {
    now.tokens_per_second = static_cast<double>(tokens_per_step_) / to_seconds(now.window_time);
  }
  now.tokens = updates_ * tokens_per_step_;
  const double elapsed = to_seconds(now.last.at - first_update_);
  if (elapsed > 0) now.goodput = std::clamp(1 - (stalled_ + repeated_) / elapsed, 0.0, 1.0);
  now.stall_seconds = stalled_;
  now.redone = redone_;
  return now;
}

}  // namespace everstep::launcher
