#include "launcher/worker/run_progress.h"

#include <algorithm>
#include <utility>

namespace everstep::launcher {
namespace {

Tick median(std::vector<Tick> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

void RunProgress::begin_generation() {
  const std::scoped_lock lock(mutex_);
  previous_update_.reset();
  timed_.clear();
}

void RunProgress::on_step(const trainer::StepReport& report) {
  const std::scoped_lock lock(mutex_);
  if (previous_update_) {
    recent_.push_back(report.at - *previous_update_);
    if (recent_.size() > kKept) recent_.erase(recent_.begin());
    timed_.push_back({recent_.back(), report.stage_times});
    if (timed_.size() > kUpdatesTimed) timed_.erase(timed_.begin());
  }
  if (first_update_ == 0) first_update_ = report.at;
  previous_update_ = report.at;
  last_ = report;
  ++updates_;
}

void RunProgress::on_validation(double loss) {
  const std::scoped_lock lock(mutex_);
  validation_loss_ = loss;
}

void RunProgress::on_change(double stall_seconds, std::int64_t redone, std::int64_t window, bool was_planned) {
  const std::scoped_lock lock(mutex_);
  if (was_planned) switch_ = stall_seconds;
  stalled_ += stall_seconds;
  redone_ += redone;
  repeated_ += to_seconds(window_time()) * static_cast<double>(redone) / static_cast<double>(window);
}

Tick RunProgress::window_time() const { return recent_.empty() ? 0 : median(recent_); }

RunProgress::Now RunProgress::now() const {
  const std::scoped_lock lock(mutex_);
  Now now;
  now.last = last_.value_or(trainer::StepReport{});
  now.validation_loss = validation_loss_;
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

RunProgress::Speeds RunProgress::speeds() const {
  const std::scoped_lock lock(mutex_);
  Speeds speeds;
  speeds.switch_seconds = switch_;
  if (timed_.empty()) return speeds;
  const auto over_updates = [&](const auto& time_in) {
    std::vector<Tick> times;
    for (const TimedUpdate& update : timed_) times.push_back(time_in(update));
    return median(std::move(times));
  };
  speeds.updates = static_cast<int>(timed_.size());
  speeds.update_time = over_updates([](const TimedUpdate& update) { return update.time; });
  speeds.stage_times = timed_.back().stage_times;
  for (std::size_t worker = 0; worker < speeds.stage_times.size(); ++worker) {
    for (std::size_t i = 0; i < speeds.stage_times[worker].size(); ++i) {
      speeds.stage_times[worker][i] =
          over_updates([&](const TimedUpdate& update) { return update.stage_times[worker][i]; });
    }
  }
  return speeds;
}

}  // namespace everstep::launcher
