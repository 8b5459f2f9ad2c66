#include "scheduler/goodput.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace everstep::scheduler {
namespace {

// A stretch of time in which nothing changes.
struct Stretch {
  std::int64_t begin_ms = 0;
  std::int64_t end_ms = 0;
  int workers = 0;
  bool stalled = false;

  double seconds() const { return static_cast<double>(end_ms - begin_ms) / 1000; }
};

std::vector<Stretch> stretches_of(const MembershipTrace& trace, std::int64_t cost_ms) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < trace.points.size(); ++i) {
    const auto [begin, workers] = trace.points[i];
    const std::int64_t end = i + 1 < trace.points.size() ? trace.points[i + 1].time_ms : trace.duration_ms;
    const std::int64_t running_from = i == 0 ? begin : begin + std::min(cost_ms, end - begin);
    if (begin < running_from) stretches.push_back({begin, running_from, workers, true});
    if (running_from < end) stretches.push_back({running_from, end, workers, false});
  }
  return stretches;
}

class GoodputCount {
 public:
  GoodputCount(const GoodputOptions& options, const RateOfWorkers& rate_of_workers)
      : options_(options), rate_of_workers_(rate_of_workers) {}

  void add(const Stretch& stretch) {
    const PlanRate& plan = plan_of(stretch.workers);
    const double possible = plan.minibatches_per_second * stretch.seconds();
    worker_seconds_ += stretch.workers * stretch.seconds();
    result_.ideal_minibatches += possible;
    if (possible == 0) {
      result_.idle_seconds += stretch.seconds();
    } else if (stretch.stalled) {
      result_.stalled_seconds += stretch.seconds();
    } else {
      result_.actual_minibatches += possible;
    }
    seconds_of_plan_[plan.label] += stretch.seconds();
  }

  // Closes the slice of the series that began where the one before it ended.
  void end_sample(double begin_seconds, double end_seconds) {
    const double seconds = end_seconds - begin_seconds;
    result_.series.push_back({end_seconds, (worker_seconds_ - before_.worker_seconds) / seconds,
                              (result_.ideal_minibatches - before_.ideal) / seconds,
                              (result_.actual_minibatches - before_.actual) / seconds, result_.fraction()});
    before_ = {worker_seconds_, result_.ideal_minibatches, result_.actual_minibatches};
  }

  Goodput finish(const MembershipTrace& trace) && {
    result_.changes = trace.changes();
    for (const auto& [label, seconds] : seconds_of_plan_) {
      result_.plans.push_back({label, seconds, 1000 * seconds / static_cast<double>(trace.duration_ms)});
    }
    std::stable_sort(result_.plans.begin(), result_.plans.end(),
                     [](const PlanShare& a, const PlanShare& b) { return a.seconds > b.seconds; });
    return std::move(result_);
  }

 private:
  struct Totals {
    double worker_seconds = 0;
    double ideal = 0;
    double actual = 0;
  };

  const PlanRate& plan_of(int workers) {
    const auto known = plans_.find(workers);
    if (known != plans_.end()) return known->second;
    PlanRate plan{0, "too few workers"};
    if (workers >= options_.min_workers) plan = rate_of_workers_(workers);
    return plans_.emplace(workers, std::move(plan)).first->second;
  }

  const GoodputOptions& options_;
  const RateOfWorkers& rate_of_workers_;
  std::map<int, PlanRate> plans_;
  std::map<std::string, double> seconds_of_plan_;
  double worker_seconds_ = 0;
  Totals before_;
  Goodput result_;
};

}  // namespace

Goodput predict_goodput(const MembershipTrace& trace, const GoodputOptions& options,
                        const RateOfWorkers& rate_of_workers) {
  EVERSTEP_CHECK(options.cost_per_change_ms >= 0 && options.samples >= 0 && trace.duration_ms > 0,
                 "nothing to simulate");
  // More slices than milliseconds would be empty ones.
  const std::int64_t samples = std::min<std::int64_t>(options.samples, trace.duration_ms);
  const auto boundary = [&](std::int64_t sample) {
    if (sample >= samples) return trace.duration_ms;
    return trace.duration_ms / samples * sample + trace.duration_ms % samples * sample / samples;
  };
  GoodputCount count(options, rate_of_workers);
  std::int64_t sample = 0;
  for (Stretch rest : stretches_of(trace, options.cost_per_change_ms)) {
    while (rest.begin_ms < rest.end_ms) {
      Stretch part = rest;
      part.end_ms = std::min(rest.end_ms, boundary(sample + 1));
      count.add(part);
      rest.begin_ms = part.end_ms;
      if (sample < samples && part.end_ms == boundary(sample + 1)) {
        count.end_sample(static_cast<double>(boundary(sample)) / 1000, static_cast<double>(part.end_ms) / 1000);
        ++sample;
      }
    }
  }
  return std::move(count).finish(trace);
}

}  // namespace everstep::scheduler
