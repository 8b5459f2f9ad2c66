#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/rehearse/chaos/fault.h"

// Which faults a job has to live through, and when. Pure: the same seed and options are the same schedule, on every
// machine and for ever (within one version of the program; the text form is what lasts).
namespace everstep::launcher::chaos {

struct TimedFault {
  std::chrono::milliseconds at{0};  // after the job's first checkpoint
  Fault fault;

  bool operator==(const TimedFault&) const = default;
};

// What the job runs: as many pipelines as the planner likes, kept full across updates or drained at each.
enum class JobKind { kClockwork, kAmdp, kSynchronous };

// The job and what happens to it. `faults` is in the order of time.
struct Schedule {
  std::uint64_t seed = 0;
  int workers = 4;       // that the job starts with
  int etcd_servers = 1;  // 1 or 3
  JobKind job = JobKind::kClockwork;
  bool deep = false;  // one group over all workers, else the plan that is fastest
  std::vector<TimedFault> faults;

  // When the last fault is over.
  std::chrono::milliseconds end() const;
  bool has(FaultKind kind) const;
  bool has_any(Needs needs) const;
  // Whether something happens on the way between workers: they must not talk past it over sockets of this host.
  bool needs_network() const;
  bool operator==(const Schedule&) const = default;
};

struct ScheduleOptions {
  int workers = 4;
  std::optional<int> etcd_servers;  // nothing: drawn
  std::chrono::milliseconds lease{3000};
  bool can_fill_disk = false;
  bool can_slow_disk = false;
  bool can_cut_network = false;
  bool can_limit_memory = false;
};

inline constexpr int kFewestWorkers = 2;    // that a schedule of ours leaves running at any time but in kill-all
inline constexpr int kMostMoreWorkers = 2;  // than it began with
inline constexpr std::chrono::milliseconds kLongestSchedule{10'000};

// Draws four to seven faults that are over within kLongestSchedule. A fault that would leave too few workers is not
// drawn; one that this machine cannot make is left out, and the others stay as they are.
Schedule make_schedule(std::uint64_t seed, const ScheduleOptions& options);

// How many workers run after each fault by the numbers of the schedule; one that is stopped does not run.
std::vector<int> running_workers(const Schedule& schedule);

// "clockwork", "amdp", "synchronous".
std::string_view to_string(JobKind kind);

// Lines: what the job is ("workers 4"), then one fault each ("1.25 stop-worker pick=2 for=4.5"). '#' begins a comment.
std::string to_text(const Schedule& schedule);
// kInvalidArgument names the line.
Result<Schedule> parse_schedule(std::string_view text);

}  // namespace everstep::launcher::chaos
