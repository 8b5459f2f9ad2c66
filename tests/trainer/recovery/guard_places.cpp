#include "tests/trainer/recovery/guard_places.h"

#include <algorithm>

namespace everstep::trainer {

std::vector<int> connected(const GuardedGeneration& generation) {
  std::vector<int> names = generation.workers;
  names.insert(names.end(), generation.donors.begin(), generation.donors.end());
  return names;
}

int number_of(const std::vector<int>& names, int name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::vector<std::vector<int>> guards_of(const GuardedGeneration& generation) {
  const auto placement = scheduler::Placement::make(generation.kind, generation.depth, 2, generation.pipelines).value();
  const int workers = generation.depth * generation.width;
  std::vector<std::vector<int>> guards;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    std::vector<int> candidates;
    for (int next = 1; next < workers; ++next) {
      const int worker = (placement.owner_of(stage) + next) % workers;
      if (worker % generation.depth != placement.owner_of(stage)) candidates.push_back(generation.workers[worker]);
    }
    const int wanted =
        std::clamp(generation.redundancy - (generation.width - 1), 0, static_cast<int>(candidates.size()));
    guards.emplace_back(candidates.begin(), candidates.begin() + wanted);
  }
  return guards;
}

scheduler::Plan plan_of(const GuardedGeneration& generation, const TrainOptions& options) {
  const auto placement = scheduler::Placement::make(generation.kind, generation.depth, 2, generation.pipelines).value();
  scheduler::Plan plan;
  plan.kind = generation.kind;
  plan.depth = generation.depth;
  plan.pipelines = placement.pipelines();
  plan.width = generation.width;
  plan.window = options.schedule.window;
  plan.preload = options.schedule.preload;
  plan.lag = generation.lag;
  plan.provisional = generation.provisional;
  for (int stage = 0; stage <= placement.stages(); ++stage) {
    plan.cuts.push_back(stage * options.model.blocks() / placement.stages());
  }
  return plan;
}

}  // namespace everstep::trainer
