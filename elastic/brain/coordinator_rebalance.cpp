// Changes of plan because workers are not equally fast.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "elastic/brain/coordinator.h"

namespace everstep::elastic {
namespace {

// A plan must promise that much more, since profiles are not exact, and save that many times what the switch costs.
constexpr double kLeastGain = 0.1;
constexpr double kMargin = 2;
// Nobody knows who trains in ten minutes.
constexpr Tick kHorizon = 600 * kTicksPerSecond;
constexpr Tick kUsualSwitch = 5 * kTicksPerSecond;  // until one was measured

// What an update will take less, as a share of what it takes now, saves over the updates to come.
bool pays(const ProgressRecord& progress, double saved_share) {
  const Tick update = progress.update_us * kMicrosecond;
  const Tick left = update * std::max<std::int64_t>(0, progress.steps - progress.step);
  const Tick cost = progress.switch_ms > 0 ? progress.switch_ms * kMillisecond : kUsualSwitch;
  return saved_share * static_cast<double>(std::min(left, kHorizon)) > kMargin * static_cast<double>(cost);
}

}  // namespace

std::vector<scheduler::WorkerInfo> Coordinator::infos_of(const Situation& seen,
                                                         const std::vector<WorkerId>& workers) const {
  std::vector<scheduler::WorkerInfo> infos;
  for (const WorkerId& id : workers) infos.push_back({id, seen.members.at(id).record.host, speeds_.slowness(id)});
  return infos;
}

// Once for each change in what is believed of the workers' speeds, not sooner than an ordinary change would be made.
void Coordinator::consider_rebalance(const Situation& seen, Tick now) {
  if (!seen.progress || speeds_.slow() == planned_for_) return;
  const Tick due = watched_since_ + options_.join_interval;
  if (now < due) return wake(due);
  const RosterRecord& roster = seen.generation->roster;
  std::vector<WorkerId> workers = eligible(seen, now);
  std::erase_if(workers, [&](const WorkerId& id) { return !roster.names(id); });
  const std::map<WorkerId, double> before = std::exchange(planned_for_, speeds_.slow());
  auto change = planned(seen, workers);
  if (!change) return;
  const std::vector<scheduler::WorkerInfo> infos = infos_of(seen, workers);
  const auto present = static_cast<double>(options_.window_time(roster.plan, infos));
  const auto next = static_cast<double>(options_.window_time(change->plan, infos));
  const double faster = present / next - 1;
  change->reason =
      rebalance_text(before, change->plan) + ": " + std::to_string(std::lround(100 * faster)) + " % faster";
  if (faster >= kLeastGain && pays(*seen.progress, 1 - next / present)) return propose(seen, *change);
  decision_.effects.emplace_back(
      Note{LogLine("not_rebalanced").add("reason", change->reason + " does not pay").text()});
}

// Whose speed is not what the plan was made for, and what becomes of them.
std::string Coordinator::rebalance_text(const std::map<WorkerId, double>& before, const scheduler::Plan& next) const {
  std::string text;
  const auto tell = [&](const WorkerId& id, const std::string& what) {
    text += (text.empty() ? "" : ", ") + name_of(id) + " is " + what;
  };
  for (const auto& [id, slowness] : planned_for_) {
    const bool is_spare = has(next.spares, id);
    tell(id, fixed_text(slowness, 1) + " times slower" + (is_spare ? " and left out" : ""));
  }
  for (const auto& [id, slowness] : before) {
    if (!planned_for_.contains(id)) tell(id, "no slower any more, or tried again");
  }
  return text;
}

}  // namespace everstep::elastic
