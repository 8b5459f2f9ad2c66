#include "elastic/sim/plans.h"

#include <algorithm>

#include "elastic/sim/stand_in.h"
#include "scheduler/clockwork.h"

namespace everstep::elastic::sim {
namespace {

int depth_for(int workers) {
  if (workers % 4 == 0) return 4;
  return workers % 3 == 0 || workers == 1 ? 1 : 2;
}

// The next ones in the row, as long as they do not own the stage themselves.
void place_guards(scheduler::Plan& plan, int redundancy) {
  plan.guards.resize(plan.depth);
  const int missing = std::min(redundancy, static_cast<int>(plan.workers.size()) - 1) - (plan.width - 1);
  for (int stage = 0; stage < plan.depth; ++stage) {
    for (int next = 1; next <= missing; ++next) plan.guards[stage].push_back(plan.workers[(stage + next) % plan.depth]);
  }
}

}  // namespace

Result<scheduler::Plan> plan_for(const std::vector<scheduler::WorkerInfo>& workers, const scheduler::Plan* previous,
                                 int redundancy, scheduler::ScheduleKind kind) {
  if (workers.empty()) return invalid_argument("there is nobody to plan for");
  scheduler::Plan plan;
  plan.kind = kind;
  plan.window = kWindow;
  plan.depth = depth_for(static_cast<int>(workers.size()));
  plan.pipelines = is_clockwork(kind) ? scheduler::usual_clockwork_pipelines(plan.depth) : 1;
  plan.width = std::min(static_cast<int>(workers.size()), kWindow) / plan.depth;
  for (int stage = 0; stage <= plan.depth; ++stage) plan.cuts.push_back(stage * kBlocks / plan.depth);
  std::vector<WorkerId> seated;
  const auto is_there = [&](const WorkerId& id) {
    return std::any_of(workers.begin(), workers.end(), [&](const auto& info) { return info.id == id; });
  };
  if (previous != nullptr) {
    std::copy_if(previous->workers.begin(), previous->workers.end(), std::back_inserter(seated), is_there);
  }
  for (const auto& info : workers) {
    if (std::find(seated.begin(), seated.end(), info.id) == seated.end()) seated.push_back(info.id);
  }
  const auto seats = seated.begin() + std::ptrdiff_t{plan.depth} * plan.width;
  plan.workers.assign(seated.begin(), seats);
  plan.spares.assign(seats, seated.end());
  place_guards(plan, redundancy);
  return plan;
}

}  // namespace everstep::elastic::sim
