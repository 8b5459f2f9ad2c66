#include "trainer/reference/used_versions.h"

#include <algorithm>
#include <utility>

#include "scheduler/versions.h"

namespace everstep::trainer {

WindowVersions::WindowVersions(int first, int window, scheduler::Cuts cuts)
    : first_(first),
      cuts_(std::move(cuts)),
      lags_(static_cast<std::size_t>(window - first), std::vector<VersionLags>(cuts_.size() - 1)) {}

// An update of the window before is the last that can fall into this one, so two windows tell everything.
Result<WindowVersions> WindowVersions::of(const scheduler::Plan& plan, const WindowStart& start, bool stash) {
  const std::int64_t window = start.drained ? 0 : 1;
  scheduler::ScheduleRequest request = request_of(plan, 0, static_cast<int>(window) + 1);
  request.first_minibatch = start.drained ? start.first : start.first_before;
  const auto schedule = scheduler::make_schedule(request);
  if (!schedule) return schedule.error();
  const scheduler::VersionTable table = scheduler::trace_versions(*schedule);

  WindowVersions versions(start.first, plan.window, plan.cuts);
  for (std::size_t worker = 0; worker < schedule->workers.size(); ++worker) {
    const std::vector<scheduler::Op>& ops = schedule->workers[worker];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!is_compute(ops[i]) || ops[i].window != window) continue;
      const std::int64_t position = schedule->position_of(static_cast<int>(worker), ops[i]).value;
      VersionLags& lags = versions.lags_[position - window * plan.window - start.first][ops[i].stage];
      const bool is_forward = ops[i].kind == scheduler::OpKind::kForward;
      (is_forward ? lags.forward : lags.backward) = static_cast<int>(window - table.seen[worker][i].value);
    }
  }
  if (!stash) return versions;
  for (std::vector<VersionLags>& stages : versions.lags_) {
    for (VersionLags& lags : stages) lags.backward = lags.forward;
  }
  return versions;
}

const VersionLags& WindowVersions::at(int minibatch, int block) const {
  const auto stage = std::upper_bound(cuts_.begin(), cuts_.end(), block) - cuts_.begin() - 1;
  return lags_[static_cast<std::size_t>(minibatch - first_)][static_cast<std::size_t>(stage)];
}

}  // namespace everstep::trainer
