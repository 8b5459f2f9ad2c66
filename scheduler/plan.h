#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "scheduler/placement.h"
#include "scheduler/profile.h"
#include "scheduler/schedule.h"
#include "scheduler/slowness.h"

namespace everstep::scheduler {

struct WorkerInfo {
  WorkerId id;
  std::string host;     // workers on one host are lost together
  double slowness = 1;  // how many times as long as usual it computes
};

// How many arbitrary simultaneous losses leave at least one complete copy of every stage's owner state (weights and
// optimizer state) and enough workers for another plan: what recovery from memory can take.
struct Survival {
  int workers = 0;
  int hosts = 0;

  bool operator==(const Survival&) const = default;
};

// Where everything is: blocks → stages → workers.
struct Plan {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int depth = 1;      // D
  int pipelines = 1;  // P
  int width = 1;      // W
  int window = 1;     // M
  int preload = 2;
  int lag = 0;                                // of the update, in clockwork
  int provisional = 0;                        // super-rounds that a provisional step leaves out; 0: there is none
  Cuts cuts;                                  // stage s is blocks [cuts[s], cuts[s + 1])
  std::vector<WorkerId> workers;              // worker = group * depth + device
  std::vector<WorkerId> spares;               // stand by, and take over at once
  std::vector<std::vector<WorkerId>> guards;  // per stage: who else keeps its owner state

  bool operator==(const Plan&) const = default;
};

// Refuses a plan that contradicts itself: plans arrive from other processes and from files.
Status check(const Plan& plan);

// The plan must have passed check().
Placement placement_of(const Plan& plan);

// What make_schedule needs to run this plan from the given window on.
ScheduleRequest request_of(const Plan& plan, std::int64_t first_window = 0, int windows = 1);

// The plan of one of its groups alone, without guards.
Plan plan_of_group(const Plan& plan, int group);

// "amdp D=8 P=4 W=2"
std::string describe(ScheduleKind kind, int depth, int pipelines, int width);

// Seats workers so that as little state as possible moves from the previous plan (nullptr: in the order of host and
// id). Fills plan.workers and plan.spares. Workers on the same previous device are alike, so device pairs are matched
// greedily by the bytes they save. The slowest become spares; no worker sits on a device that is planned to be faster
// than it is, which must be possible (see seatings()).
void seat_workers(Plan& plan, const ModelProfile& profile, const std::vector<WorkerInfo>& workers, const Plan* previous,
                  const Slowness& slowness = {});

// Bytes that workers of `next` need and did not hold under `previous` (all they need, if there was none).
std::int64_t moved_bytes(const ModelProfile& profile, const Plan* previous, const Plan& next);

}  // namespace everstep::scheduler
