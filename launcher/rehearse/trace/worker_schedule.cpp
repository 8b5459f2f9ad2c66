#include "launcher/rehearse/trace/worker_schedule.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace everstep::launcher {
namespace {

using Rank = std::ptrdiff_t;

// Plays a slice on workers.
class Mapping {
 public:
  Mapping(const TraceSlice& slice, int most_workers) : nodes_(slice.nodes), most_nodes_(slice.most_nodes()) {
    most_workers_ = std::min<Rank>(most_workers, most_nodes_);
    schedule_.duration_ms = slice.duration_ms;
    // To the nearest, but somebody.
    const Rank first = (2 * share(std::ssize(nodes_)) + most_nodes_) / (2 * most_nodes_);
    schedule_.first_workers = static_cast<int>(std::max<Rank>(first, 1));
    for (int i = 0; i < schedule_.first_workers; ++i) workers_.push_back(next_worker_++);
  }

  void take(const NodeInstant& instant) {
    WorkerChange change{instant.time_ms, {}, {}};
    if (!instant.removed.empty()) kill(ranks_of(instant.removed), change);
    for (const std::string& node : instant.removed) std::erase(nodes_, node);
    if (nodes_.empty()) kill_rest(change);
    nodes_.insert(nodes_.end(), instant.added.begin(), instant.added.end());
    start(std::ssize(instant.added), change);
    if (!change.killed.empty() || !change.started.empty()) schedule_.changes.push_back(std::move(change));
  }

  WorkerSchedule finish() && { return std::move(schedule_); }

 private:
  // Workers for so many nodes, times most_nodes_.
  Rank share(Rank nodes) const { return nodes * most_workers_; }
  Rank share_up(Rank nodes) const { return (share(nodes) + most_nodes_ - 1) / most_nodes_; }

  std::vector<Rank> ranks_of(const std::vector<std::string>& removed) const {
    std::vector<Rank> ranks;
    for (const std::string& node : removed) {
      ranks.push_back(std::find(nodes_.begin(), nodes_.end(), node) - nodes_.begin());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  void kill(const std::vector<Rank>& ranks, WorkerChange& change) {
    const Rank count = std::min(share_up(std::ssize(ranks)), std::ssize(workers_));
    std::vector<bool> is_killed(workers_.size());
    for (Rank i = 0; i < count; ++i) {
      const Rank node = ranks[i * std::ssize(ranks) / count];
      Rank worker = node * std::ssize(workers_) / std::ssize(nodes_);
      while (is_killed[worker]) worker = (worker + 1) % std::ssize(workers_);
      is_killed[worker] = true;
    }
    std::vector<int> left;
    for (std::size_t i = 0; i < workers_.size(); ++i) (is_killed[i] ? change.killed : left).push_back(workers_[i]);
    workers_ = std::move(left);
  }

  void kill_rest(WorkerChange& change) {
    change.killed.insert(change.killed.end(), workers_.begin(), workers_.end());
    workers_.clear();
  }

  void start(Rank added, WorkerChange& change) {
    const Rank exact = share(std::ssize(nodes_));
    const Rank fewest = std::max<Rank>(nodes_.empty() ? 0 : 1, (exact - 1) / most_nodes_);
    const Rank most = nodes_.empty() ? 0 : std::min<Rank>(most_workers_, exact / most_nodes_ + 1);
    const Rank now = std::ssize(workers_);
    const Rank wanted = std::clamp(now + share_up(added), std::max(now, fewest), std::max(now, most));
    while (std::ssize(workers_) < wanted) {
      change.started.push_back(next_worker_);
      workers_.push_back(next_worker_++);
    }
  }

  std::vector<std::string> nodes_;  // the oldest first
  std::vector<int> workers_;        // the same
  Rank most_nodes_;                 // K
  Rank most_workers_ = 0;           // N
  int next_worker_ = 0;
  WorkerSchedule schedule_;
};

Tick real_ticks(double trace_seconds, double speedup) { return ticks_of(trace_seconds / speedup); }

}  // namespace

int WorkerSchedule::killed() const {
  std::ptrdiff_t count = 0;
  for (const WorkerChange& change : changes) count += std::ssize(change.killed);
  return static_cast<int>(count);
}

int WorkerSchedule::losses() const {
  return static_cast<int>(
      std::count_if(changes.begin(), changes.end(), [](const WorkerChange& change) { return !change.killed.empty(); }));
}

int WorkerSchedule::started() const {
  std::ptrdiff_t count = 0;
  for (const WorkerChange& change : changes) count += std::ssize(change.started);
  return static_cast<int>(count);
}

int WorkerSchedule::final_workers() const { return first_workers + started() - killed(); }

WorkerSchedule map_to_workers(const TraceSlice& slice, int most_workers) {
  EVERSTEP_CHECK(most_workers > 0 && !slice.nodes.empty(), "nobody to map to, or nobody to map");
  Mapping mapping(slice, most_workers);
  for (const NodeInstant& instant : slice.instants) mapping.take(instant);
  return std::move(mapping).finish();
}

scheduler::MembershipTrace membership_of(const WorkerSchedule& schedule) {
  scheduler::MembershipTrace trace;
  trace.duration_ms = schedule.duration_ms;
  int workers = schedule.first_workers;
  trace.points.push_back({0, workers});
  for (const WorkerChange& change : schedule.changes) {
    workers += static_cast<int>(std::ssize(change.started) - std::ssize(change.killed));
    trace.points.push_back({change.time_ms, workers});
  }
  return trace;
}

std::vector<WorkerAction> actions_of(const WorkerSchedule& schedule, double speedup, double notice_seconds) {
  std::vector<WorkerAction> actions;
  std::map<int, Tick> born;
  for (const WorkerChange& change : schedule.changes) {
    const double seconds = static_cast<double>(change.time_ms) / 1000;
    const Tick at = real_ticks(seconds, speedup);
    for (const int worker : change.killed) {
      const Tick asked = real_ticks(std::max(0.0, seconds - notice_seconds), speedup);
      if (notice_seconds > 0) actions.push_back({std::max(asked, born[worker]), ActionKind::kAskToLeave, worker});
      actions.push_back({at, ActionKind::kKill, worker});
    }
    for (const int worker : change.started) {
      born[worker] = at;
      actions.push_back({at, ActionKind::kStart, worker});
    }
  }
  // Of equal times the order stays: a worker starts before it is asked to leave.
  std::stable_sort(actions.begin(), actions.end(),
                   [](const WorkerAction& a, const WorkerAction& b) { return a.at < b.at; });
  return actions;
}

}  // namespace everstep::launcher
