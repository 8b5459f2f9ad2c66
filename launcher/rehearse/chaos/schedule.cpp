#include "launcher/rehearse/chaos/schedule.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kStream = 0xc4a05;
constexpr int kFewestFaults = 4;
constexpr int kMostFaults = 7;
constexpr int kTries = 200;

// What nobody has to ask for comes most often.
constexpr JobKind kJobKinds[] = {JobKind::kClockwork, JobKind::kClockwork, JobKind::kAmdp, JobKind::kSynchronous};

struct Share {
  FaultKind kind{};
  int weight = 0;
};

// What is likeliest to find something, and what happens to people most, comes most often.
constexpr Share kShares[] = {
    {FaultKind::kKillWorker, 4}, {FaultKind::kKillLeader, 4},  {FaultKind::kKillTwo, 3},
    {FaultKind::kKillAgain, 3},  {FaultKind::kKillAll, 1},     {FaultKind::kTermWorker, 4},
    {FaultKind::kStopWorker, 4}, {FaultKind::kStopLeader, 2},  {FaultKind::kJoin, 5},
    {FaultKind::kScale, 3},      {FaultKind::kEtcdKill, 2},    {FaultKind::kEtcdStop, 2},
    {FaultKind::kEtcdAway, 1},   {FaultKind::kEtcdRoll, 1},    {FaultKind::kFillDisk, 2},
    {FaultKind::kSlowDisk, 1},   {FaultKind::kHalfOpen, 1},    {FaultKind::kCorrupt, 1},
    {FaultKind::kDelay, 1},      {FaultKind::kCutOff, 2},      {FaultKind::kCutEtcd, 1},
    {FaultKind::kCutPeers, 1},   {FaultKind::kThinLine, 1},    {FaultKind::kEtcdSplit, 2},
    {FaultKind::kKillAcked, 2},  {FaultKind::kCrashWorker, 2}, {FaultKind::kOutOfMemory, 1},
    {FaultKind::kTermKill, 2},   {FaultKind::kRevokeLease, 2},
};

bool is_about_connections(FaultKind kind) {
  return kind == FaultKind::kHalfOpen || kind == FaultKind::kCorrupt || kind == FaultKind::kDelay ||
         form_of(kind).needs == Needs::kFarHost;
}

// These hold up the whole job, or change its world for good: one of each at most.
bool is_heavy(FaultKind kind) {
  return kind == FaultKind::kKillAll || is_about_connections(kind) || form_of(kind).needs != Needs::kNothing;
}

// Who stands behind a proxy cannot be called from another host, and there is one cable to cut.
bool are_at_odds(FaultKind one, FaultKind other) {
  return is_about_connections(one) && is_about_connections(other) &&
         (form_of(one).needs == Needs::kFarHost || form_of(other).needs == Needs::kFarHost);
}

bool is_about_etcd(FaultKind kind) {
  return kind == FaultKind::kEtcdKill || kind == FaultKind::kEtcdStop || kind == FaultKind::kEtcdAway ||
         kind == FaultKind::kEtcdRoll || kind == FaultKind::kEtcdSplit;
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : stream_(seed, kStream) {}

  int from(int lowest, int highest) {
    const auto choices = static_cast<std::uint64_t>(highest) - static_cast<std::uint64_t>(lowest) + 1;
    return lowest + static_cast<int>(stream_.below(next_++, choices));
  }
  milliseconds time(milliseconds lowest, milliseconds highest) {
    constexpr int kGrain = 10;
    return milliseconds(kGrain *
                        from(static_cast<int>(lowest.count()) / kGrain, static_cast<int>(highest.count()) / kGrain));
  }

 private:
  const RandomStream stream_;
  std::uint64_t next_ = 0;
};

// What a fault does to the number of workers that run, now and when it is over.
struct Effect {
  int now = 0;
  int later = 0;
};

Effect effect_of(const Fault& fault, int running) {
  switch (fault.kind) {
    case FaultKind::kKillWorker:
    case FaultKind::kKillLeader:
    case FaultKind::kKillAcked:
    case FaultKind::kCrashWorker:
    case FaultKind::kTermWorker:
    case FaultKind::kTermKill:
    case FaultKind::kHang:
      return {-1, 0};
    case FaultKind::kRevokeLease:
      return {-1, 1};
    case FaultKind::kKillTwo:
    case FaultKind::kKillAgain:
      return {-2, 0};
    case FaultKind::kKillAll:
      return {fault.number - running, 0};
    case FaultKind::kStopWorker:
    case FaultKind::kStopLeader:
      return {-1, 1};
    case FaultKind::kJoin:
    case FaultKind::kScale:
      return {fault.number, 0};
    // The one that joins may come and go until its connections are whole. One on another host counts for nothing: that
    // fault may be left out.
    case FaultKind::kHalfOpen:
    case FaultKind::kCorrupt:
    case FaultKind::kDelay:
      return {0, 1};
    default:
      return {};
  }
}

bool can_draw(FaultKind kind, const Schedule& schedule) {
  const auto excludes = [&](const TimedFault& one) {
    const FaultKind other = one.fault.kind;
    return (is_heavy(kind) && other == kind) || (is_about_etcd(kind) && is_about_etcd(other)) ||
           are_at_odds(kind, other);
  };
  if (std::any_of(schedule.faults.begin(), schedule.faults.end(), excludes)) return false;
  const Needs needs = form_of(kind).needs;
  const bool needs_three = needs == Needs::kThreeServers || kind == FaultKind::kEtcdSplit;
  return needs != Needs::kNobody && (!needs_three || schedule.etcd_servers == 3);
}

bool is_possible(FaultKind kind, const ScheduleOptions& options) {
  const Needs needs = form_of(kind).needs;
  return (needs != Needs::kSmallDisk || options.can_fill_disk) &&
         (needs != Needs::kSlowDisk || options.can_slow_disk) &&
         (needs != Needs::kFarHost || options.can_cut_network) &&
         (needs != Needs::kNoMemory || options.can_limit_memory);
}

FaultKind draw_kind(const Schedule& schedule, Draws& draws) {
  int total = 0;
  for (const Share& share : kShares) total += can_draw(share.kind, schedule) ? share.weight : 0;
  int at = draws.from(0, total - 1);
  for (const Share& share : kShares) {
    at -= can_draw(share.kind, schedule) ? share.weight : 0;
    if (at < 0) return share.kind;
  }
  return FaultKind::kJoin;
}

milliseconds draw_length(FaultKind kind, milliseconds lease, Draws& draws) {
  switch (kind) {
    case FaultKind::kKillAgain:
    case FaultKind::kTermKill:
      return draws.time(milliseconds(10), milliseconds(200));
    case FaultKind::kStopWorker:
    case FaultKind::kStopLeader: {
      // Shorter than the lease, or long enough to lose it.
      const bool is_short = draws.from(0, 1) == 0;
      return is_short ? draws.time(milliseconds(100), lease / 2) : draws.time(lease * 3 / 2, lease * 2);
    }
    case FaultKind::kSlowDisk:
      return draws.time(lease, lease * 2);
    case FaultKind::kEtcdAway:
      return draws.time(milliseconds(500), lease * 2);
    case FaultKind::kEtcdKill:
    case FaultKind::kEtcdStop:
    case FaultKind::kEtcdSplit:
      return draws.time(milliseconds(500), lease * 3 / 2);
    case FaultKind::kHalfOpen:
    case FaultKind::kCorrupt:
    case FaultKind::kDelay:
      return draws.time(milliseconds(3500), milliseconds(5500));
    case FaultKind::kCutOff:
    case FaultKind::kCutEtcd:
    case FaultKind::kCutPeers:
    case FaultKind::kThinLine:
      return draws.time(milliseconds(4000), milliseconds(7000));
    default:
      return draws.time(milliseconds(1000), milliseconds(3000));
  }
}

Fault draw_fault(const Schedule& schedule, milliseconds lease, Draws& draws) {
  Fault fault{draw_kind(schedule, draws)};
  const FaultForm& form = form_of(fault.kind);
  if (form.picks) fault.pick = draws.from(0, 7);
  if (fault.kind == FaultKind::kKillAll) fault.number = draws.from(kFewestWorkers, schedule.workers);
  if (fault.kind == FaultKind::kJoin) fault.number = draws.from(1, 2);
  if (fault.kind == FaultKind::kScale) fault.number = draws.from(0, 1) == 0 ? -1 : draws.from(1, 2);
  // An fsync that is longer than a lease, or not.
  if (fault.kind == FaultKind::kSlowDisk)
    fault.number = draws.from(0, 1) == 0 ? 1 : static_cast<int>(lease.count() / 1000) + 1;
  if (form.lasts) fault.lasts = draw_length(fault.kind, lease, draws);
  return fault;
}

bool fits(const Schedule& schedule) {
  const std::vector<int> running = running_workers(schedule);
  return schedule.end() <= kLongestSchedule && std::all_of(running.begin(), running.end(), [&](int workers) {
           return workers >= kFewestWorkers && workers <= schedule.workers + kMostMoreWorkers;
         });
}

}  // namespace

milliseconds Schedule::end() const {
  milliseconds last{0};
  for (const TimedFault& one : faults) last = std::max(last, one.at + one.fault.lasts);
  return last;
}

bool Schedule::has(FaultKind kind) const {
  return std::any_of(faults.begin(), faults.end(), [&](const TimedFault& one) { return one.fault.kind == kind; });
}

bool Schedule::has_any(Needs needs) const {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const TimedFault& one) { return form_of(one.fault.kind).needs == needs; });
}

bool Schedule::needs_network() const {
  return has_any(Needs::kFarHost) || has(FaultKind::kHalfOpen) || has(FaultKind::kCorrupt) || has(FaultKind::kDelay);
}

std::vector<int> running_workers(const Schedule& schedule) {
  std::vector<int> result;
  int running = schedule.workers;
  std::vector<std::pair<milliseconds, int>> returns;
  for (const TimedFault& one : schedule.faults) {
    for (auto& [when, workers] : returns) {
      if (when <= one.at) running += std::exchange(workers, 0);
    }
    // Those that are stopped die like the others.
    if (one.fault.kind == FaultKind::kKillAll) returns.clear();
    const Effect effect = effect_of(one.fault, running);
    running += effect.now;
    returns.emplace_back(one.at + one.fault.lasts, effect.later);
    result.push_back(running);
  }
  return result;
}

Schedule make_schedule(std::uint64_t seed, const ScheduleOptions& options) {
  Draws draws(seed);
  Schedule schedule;
  schedule.seed = seed;
  schedule.workers = options.workers;
  schedule.etcd_servers = draws.from(0, 1) == 0 ? 1 : 3;
  if (options.etcd_servers) schedule.etcd_servers = *options.etcd_servers;
  schedule.job = kJobKinds[draws.from(0, static_cast<int>(std::ssize(kJobKinds)) - 1)];
  schedule.deep = draws.from(0, 1) == 0;
  const int wanted = draws.from(kFewestFaults, kMostFaults);
  milliseconds at{0};
  for (int tries = 0; tries < kTries && std::ssize(schedule.faults) < wanted; ++tries) {
    const milliseconds next = at + draws.time(milliseconds(100), milliseconds(2000));
    schedule.faults.push_back({next, draw_fault(schedule, options.lease, draws)});
    if (fits(schedule)) {
      at = next;
    } else {
      schedule.faults.pop_back();
    }
  }
  // Last, so that a seed means the same wherever it can.
  std::erase_if(schedule.faults, [&](const TimedFault& one) { return !is_possible(one.fault.kind, options); });
  return schedule;
}

}  // namespace everstep::launcher::chaos
