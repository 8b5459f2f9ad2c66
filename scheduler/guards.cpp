#include "scheduler/guards.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace everstep::scheduler {
namespace {

std::int64_t owner_state_bytes(const StageCost& stage) { return stage.weight_bytes + stage.optimizer_bytes; }

// Holders of each stage's owner state: the owners of all groups, then the guards.
std::vector<std::vector<WorkerId>> holders_of(const Plan& plan) {
  const Placement placement = placement_of(plan);
  std::vector<std::vector<WorkerId>> holders(plan.cuts.size() - 1);
  for (std::size_t stage = 0; stage < holders.size(); ++stage) {
    for (int group = 0; group < plan.width; ++group) {
      holders[stage].push_back(plan.workers[group * plan.depth + placement.owner_of(static_cast<int>(stage))]);
    }
    if (!plan.guards.empty()) {
      holders[stage].insert(holders[stage].end(), plan.guards[stage].begin(), plan.guards[stage].end());
    }
  }
  return holders;
}

// Recovery from memory needs the owner's previous version too; without room for it a copy does not count.
bool owners_keep_two_versions(const Plan& plan, const std::vector<StageCost>& stages,
                              const std::vector<std::int64_t>& free_bytes) {
  const Placement placement = placement_of(plan);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    if (owner_state_bytes(stages[stage]) > free_bytes[placement.owner_of(stage)]) return false;
  }
  return true;
}

struct GuardCandidate {
  WorkerId id;
  const std::string* host = nullptr;
  std::int64_t free_bytes = 0;
  std::int64_t guarded_bytes = 0;
};

std::vector<GuardCandidate> candidates_of(const Plan& plan, const std::vector<StageCost>& stages,
                                          const std::map<WorkerId, const std::string*>& host_of,
                                          const std::vector<std::int64_t>& free_bytes) {
  const Placement placement = placement_of(plan);
  std::vector<std::int64_t> left = free_bytes;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    left[placement.owner_of(stage)] -= owner_state_bytes(stages[stage]);
  }
  std::vector<GuardCandidate> candidates;
  for (std::size_t seat = 0; seat < plan.workers.size(); ++seat) {
    const WorkerId& id = plan.workers[seat];
    candidates.push_back({id, host_of.at(id), left[seat % plan.depth], 0});
  }
  return candidates;
}

int most_losses(const std::vector<std::size_t>& copies) {
  return static_cast<int>(*std::min_element(copies.begin(), copies.end())) - 1;
}

}  // namespace

void place_guards(Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                  int redundancy, const std::vector<std::int64_t>& free_bytes) {
  plan.guards.clear();
  if (!owners_keep_two_versions(plan, stages, free_bytes)) return;
  plan.guards.resize(stages.size());
  std::map<WorkerId, const std::string*> host_of;
  for (const WorkerInfo& worker : workers) host_of[worker.id] = &worker.host;
  std::vector<GuardCandidate> candidates = candidates_of(plan, stages, host_of, free_bytes);
  const auto holders = holders_of(plan);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::int64_t bytes = 2 * owner_state_bytes(stages[stage]);
    std::set<WorkerId> holding(holders[stage].begin(), holders[stage].end());
    std::set<std::string> hosts;
    for (const WorkerId& holder : holding) hosts.insert(*host_of[holder]);
    while (std::ssize(holding) < 1 + redundancy) {
      const auto rank = [&](const GuardCandidate& candidate) {
        return std::tuple(hosts.contains(*candidate.host), candidate.guarded_bytes, candidate.id);
      };
      GuardCandidate* best = nullptr;
      for (GuardCandidate& candidate : candidates) {
        const bool possible = candidate.free_bytes >= bytes && !holding.contains(candidate.id);
        if (possible && (best == nullptr || rank(candidate) < rank(*best))) best = &candidate;
      }
      if (best == nullptr) break;
      best->free_bytes -= bytes;
      best->guarded_bytes += bytes;
      holding.insert(best->id);
      hosts.insert(*best->host);
      plan.guards[stage].push_back(best->id);
    }
  }
}

Survival survival_of(const Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                     int fewest_workers, const std::vector<std::int64_t>& free_bytes) {
  if (!owners_keep_two_versions(plan, stages, free_bytes)) return {};
  std::map<WorkerId, std::string> host_of;
  std::map<std::string, int> workers_on;
  for (const WorkerInfo& worker : workers) {
    host_of[worker.id] = worker.host;
    ++workers_on[worker.host];
  }
  const Survival possible = survival_by_copies(plan, host_of);
  Survival survival;
  const int expendable = static_cast<int>(workers.size()) - fewest_workers;
  survival.workers = std::clamp(possible.workers, 0, std::max(0, expendable));
  std::vector<int> sizes;
  for (const auto& [host, count] : workers_on) sizes.push_back(count);
  std::sort(sizes.rbegin(), sizes.rend());
  int lost = 0;
  while (survival.hosts < possible.hosts && lost + sizes[survival.hosts] <= expendable) {
    lost += sizes[survival.hosts++];
  }
  return survival;
}

bool keeps_copies(const Plan& plan, int redundancy) {
  const auto has_any = [](const std::vector<WorkerId>& guards) { return !guards.empty(); };
  if (redundancy == 0 || plan.guards.empty()) return false;
  return plan.width > 1 || std::any_of(plan.guards.begin(), plan.guards.end(), has_any);
}

std::int64_t copy_bytes(const Plan& plan, const ModelProfile& profile, int redundancy) {
  if (!keeps_copies(plan, redundancy)) return 0;
  const Placement placement = placement_of(plan);
  std::map<WorkerId, std::int64_t> bytes;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const std::int64_t version = owner_state_bytes(stage_cost(profile, plan.cuts[stage], plan.cuts[stage + 1]));
    for (int group = 0; group < plan.width; ++group) {
      bytes[plan.workers[group * plan.depth + placement.owner_of(stage)]] += version;
    }
    for (const WorkerId& guard : plan.guards[stage]) bytes[guard] += 2 * version;
  }
  std::int64_t most = 0;
  for (const auto& [worker, held] : bytes) most = std::max(most, held);
  return most;
}

Survival survival_by_copies(const Plan& plan, const std::map<WorkerId, std::string>& host_of) {
  std::vector<std::size_t> worker_copies;
  std::vector<std::size_t> host_copies;
  for (const std::vector<WorkerId>& holders : holders_of(plan)) {
    std::set<std::string> hosts;
    for (const WorkerId& holder : holders) hosts.insert(host_of.at(holder));
    worker_copies.push_back(holders.size());
    host_copies.push_back(hosts.size());
  }
  return {most_losses(worker_copies), most_losses(host_copies)};
}

std::vector<WorkerId> one_loss_too_many(const Plan& plan) {
  const auto holders = holders_of(plan);
  return *std::min_element(holders.begin(), holders.end(),
                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
}

}  // namespace everstep::scheduler
