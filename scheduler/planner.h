#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/plan.h"

namespace everstep::scheduler {

// How much slower than the fastest a plan may be to win by what it moves and survives.
inline constexpr double kPlanTolerance = 1.03;

// Whether a plan has a provisional step (see ScheduleRequest::provisional).
enum class ProvisionalWish : std::uint8_t {
  kOff,
  kAuto,  // if it costs at most kProvisionalTolerance, and has at least half of a window in its sums
  kOn,    // if its windows allow one at all, whatever time it costs; only plans with memory for it are made
};
inline constexpr double kProvisionalTolerance = 1.01;

struct PlanOptions {
  int window = 128;  // M, minibatches per update whatever the number of workers
  int preload = 2;
  int redundancy = 1;        // guard copies of owner state per stage
  bool synchronous = false;  // never let a minibatch meet two weight versions
  bool clockwork = true;     // may be chosen without being asked for; without it: what to compare it with
  ProvisionalWish provisional = ProvisionalWish::kOff;
  Hardware hardware;
  std::optional<Plan> previous;  // what runs now: plans within 3 % of the fastest are chosen to move little

  // Left empty, the planner chooses.
  std::optional<ScheduleKind> kind;
  std::optional<int> depth;
  std::optional<int> width;
  std::optional<int> pipelines;
  std::optional<int> lag;  // of the update in clockwork: as far as window and memory allow, and D slots at most
};

// Why a plan has no provisional step.
enum class NoStep : std::uint8_t {
  kNotWished,
  kWindows,  // no window begins before the update of the one before, or its sums would have too little of a window
  kTime,     // updates would take more than kProvisionalTolerance as long
  kMemory,
  kCopies,  // guards would have no room for the copies that they keep without it
};

// One shape that was considered.
struct Candidate {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int depth = 1;
  int pipelines = 1;
  int width = 1;
  int lag = 0;                  // of the update, in clockwork
  Tick window_time = 0;         // estimated, in steady state; 0 if it does not fit
  double busy = 0;              // of the workers in use
  std::int64_t peak_bytes = 0;  // on the fullest worker, without guard copies
  bool fits = true;
  // Worked out only for candidates within kPlanTolerance of the fastest:
  std::optional<std::int64_t> moved_bytes;  // from the previous plan; 0 without one
  std::optional<Survival> survives;

  bool operator==(const Candidate&) const = default;
};

struct PlanReport {
  Plan plan;
  Candidate chosen;
  // All that were timed, fastest first, then those that do not fit. Only the chosen one has the provisional step.
  std::vector<Candidate> candidates;
  std::string reason;             // one or two sentences for people, about the plans as they are without such a step
  std::optional<NoStep> no_step;  // nothing: the plan has a provisional step

  double minibatches_per_second() const { return static_cast<double>(plan.window) / to_seconds(chosen.window_time); }
};

// Chooses depth, pipelines, width and cuts for these workers. Every depth D (up to 128 unless a deeper one is asked
// for) and width W with D·W ≤ workers and D·W ≤ window is considered: AMDP at depths 2 and 4k (1F1B there when half the
// model does not fit), at other depths 1F1B or, for even ones, two directions. Each is timed by the discrete-event
// model, unless a lower bound (the work of its busiest device) already rules it out. The fastest that fits wins; within
// 3 % of it the one that moves the fewest bytes, then the one that survives the most losses.
//
// Clockwork is considered at every depth from 2 on, too. It is timed with as many pipelines as fit, with as many as fit
// and go into the window, and with one; and with a later update where that gains more than 1 %. Within 3 % of the
// fastest those with at most two minibatches in stage 0 of a pipeline come first, since they have more replicas.
//
// A provisional step does not weigh in the choice, but with kOn only plans count that have memory for it. The plan that
// is chosen gets one if options.provisional, memory and the copies that guards keep allow, which leaves out as few
// super-rounds as hide it.
//
// Where stages take as long whatever they have (hardware.stage_times), depth and width are those that the profile's own
// times would give, and only the rest is planned for these times.
//
// Where workers are not equally fast, the D·W fastest are seated, the cuts give slow devices less to do (see
// seatings()), and depths of AMDP are tried with 1F1B, too. So leaving a slow worker out competes with giving it
// little.
//
// Fails with kInvalidArgument when nothing fits, and says how much memory is missing; or when there is no such shape,
// and says which numbers of pipelines there could be.
Result<PlanReport> plan(const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
                        const PlanOptions& options = {});

}  // namespace everstep::scheduler
