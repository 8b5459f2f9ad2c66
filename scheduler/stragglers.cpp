#include "scheduler/stragglers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "scheduler/partition.h"

namespace everstep::scheduler {
namespace {

constexpr int kMostTried = 8;      // devices for one that is slow
constexpr Tick kOfNoAccount = 10;  // such a part of what a device has on average

// Descending: the slowest `width` workers share a device, and so on, so that as few devices as possible are slow.
Slowness slowest_together(const std::vector<WorkerInfo>& workers, int depth, int width) {
  std::vector<double> all;
  for (const WorkerInfo& worker : workers) all.push_back(worker.slowness);
  std::sort(all.begin(), all.end());
  all.resize(static_cast<std::size_t>(depth) * width);
  Slowness devices;
  for (int device = 0; device < depth; ++device)
    devices.push_back(all[all.size() - 1 - static_cast<std::size_t>(device) * width]);
  return devices;
}

// One slow device after the other, the slowest first, each where the round is shortest then.
Slowness least_harm(const ModelProfile& profile, const Placement& placement, const Slowness& descending) {
  Slowness seated(placement.depth(), descending.back());
  std::vector<bool> taken(placement.depth(), false);
  const int stride = std::max(1, placement.depth() / kMostTried);
  for (const double slow : descending) {
    if (slow == descending.back()) break;
    int best = -1;
    Tick shortest = 0;
    for (int device = 0; device < placement.depth(); ++device) {
      if (taken[device] || (best >= 0 && device % stride != 0 && device != placement.depth() - 1)) continue;
      Slowness tried = seated;
      tried[device] = slow;
      const Cuts cuts = partition_blocks(profile, placement, Balance::kTime, tried);
      const Tick round = estimated_round(profile, placement, tried, cuts);
      if (best >= 0 && round >= shortest) continue;
      best = device;
      shortest = round;
    }
    taken[best] = true;
    seated[best] = slow;
  }
  return seated;
}

// Whether the plan's workers are the fastest that there are, so that they may all stay.
bool has_the_fastest(const Plan& plan, const std::vector<WorkerInfo>& workers) {
  const std::set<WorkerId> seated(plan.workers.begin(), plan.workers.end());
  double slowest_seated = 0;
  double fastest_spare = std::numeric_limits<double>::infinity();
  std::size_t present = 0;
  for (const WorkerInfo& worker : workers) {
    if (!seated.contains(worker.id)) {
      fastest_spare = std::min(fastest_spare, worker.slowness);
      continue;
    }
    slowest_seated = std::max(slowest_seated, worker.slowness);
    ++present;
  }
  return present == plan.workers.size() && slowest_seated <= fastest_spare;
}

}  // namespace

std::vector<Slowness> seatings(const ModelProfile& profile, const Placement& placement, int width,
                               const std::vector<WorkerInfo>& workers, const Plan* previous) {
  const bool all_as_usual =
      std::all_of(workers.begin(), workers.end(), [](const WorkerInfo& worker) { return worker.slowness == 1; });
  if (all_as_usual) return {Slowness{}};
  const int depth = placement.depth();
  std::vector<Slowness> ways{least_harm(profile, placement, slowest_together(workers, depth, width))};
  const bool may_stay = previous != nullptr && previous->depth == depth && previous->width == width &&
                        has_the_fastest(*previous, workers);
  if (!may_stay) return ways;
  Slowness present = slowness_of(*previous, workers);
  if (present != ways.front()) ways.push_back(std::move(present));
  return ways;
}

Slowness slowness_of(const Plan& plan, const std::vector<WorkerInfo>& workers) {
  std::map<WorkerId, double> slowness;
  for (const WorkerInfo& worker : workers) slowness[worker.id] = worker.slowness;
  Slowness devices(plan.depth, 0);
  for (std::size_t seat = 0; seat < plan.workers.size(); ++seat) {
    const auto known = slowness.find(plan.workers[seat]);
    double& slowest = devices[seat % plan.depth];
    slowest = std::max(slowest, known == slowness.end() ? 1.0 : known->second);
  }
  return devices;
}

Tick window_time(const ModelProfile& profile, const Hardware& hardware, const Plan& plan,
                 const std::vector<WorkerInfo>& workers) {
  const PlanShape shape{plan.kind, placement_of(plan), plan.cuts, {}, slowness_of(plan, workers),
                        plan.lag,  plan.provisional};
  return window_time(profile, hardware, shape, plan.window, plan.width, plan.preload).window;
}

std::vector<double> measured_slowness(const Plan& plan, const ModelProfile& profile,
                                      const std::vector<std::vector<Tick>>& stage_times) {
  const Placement placement = placement_of(plan);
  const StageCost whole = stage_cost(profile, 0, plan.cuts.back());
  const Tick least = (whole.forward + whole.backward) * placement.pipelines() / (plan.depth * kOfNoAccount);
  std::vector<double> ratios(plan.workers.size(), 0);
  std::vector<double> known;
  for (std::size_t worker = 0; worker < std::min(ratios.size(), stage_times.size()); ++worker) {
    const std::vector<int>& stages = placement.stages_on(static_cast<int>(worker) % plan.depth);
    const std::vector<Tick>& times = stage_times[worker];
    if (times.size() != stages.size() || std::ranges::find(times, Tick{0}) != times.end()) continue;
    Tick measured = 0;
    Tick expected = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const StageCost cost = stage_cost(profile, plan.cuts[stages[i]], plan.cuts[stages[i] + 1]);
      measured += times[i];
      expected += cost.forward + cost.backward;
    }
    if (expected < least) continue;
    ratios[worker] = static_cast<double>(measured) / static_cast<double>(expected);
    known.push_back(ratios[worker]);
  }
  if (known.empty()) return ratios;
  // Of two workers the faster one is usual.
  const auto median = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), median, known.end());
  for (double& ratio : ratios) ratio /= *median;
  return ratios;
}

}  // namespace everstep::scheduler
