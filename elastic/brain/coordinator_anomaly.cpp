// Windows whose gradient nobody may apply: run again to tell bad data from a worker that computes wrongly.
#include <algorithm>
#include <utility>

#include "elastic/brain/coordinator.h"

namespace everstep::elastic {
namespace {

// All who stopped for it tell the same.
std::optional<AnomalyReport> report_of(const Situation& seen) {
  for (const auto& [id, held] : seen.held) {
    if (held.anomaly) return held.anomaly;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TrialStep> Coordinator::step_after_anomaly(const Situation& seen) const {
  const auto report = report_of(seen);
  if (!report || !seen.generation) return std::nullopt;
  return next_step(seen.generation->trial, *report);
}

// Found out by a window that passed on the same bits on which it had failed, or failed otherwise.
std::optional<WorkerId> Coordinator::guilty_worker(const Situation& seen) const {
  if (const auto step = step_after_anomaly(seen)) return step->guilty;
  const auto& trial = seen.generation->trial;
  return trial && trial->convicts && !seen.ready.empty() ? trial->report.suspect : std::nullopt;
}

// Whatever is wrong with it is not over after a second. It stays, and people are told, if the others could not go on.
bool Coordinator::evict_guilty(const Situation& seen, Tick now) {
  const auto guilty = guilty_worker(seen);
  const Attempt& attempt = seen.generation->roster.attempt;
  if (!guilty || !seen.has(*guilty) || keeps_guilty_in_ == attempt) return false;
  std::vector<WorkerId> staying = eligible(seen, now);
  std::erase(staying, *guilty);
  const bool can_go_on = std::ssize(staying) >= std::max(options_.min_workers, 1) && planned(seen, staying);
  const Situation::Member& member = seen.members.at(*guilty);
  const std::string& host = member.record.host;
  LogLine event("worker_at_fault");
  event.add("worker", name_of(*guilty)).add("host", host).add("fate", can_go_on ? "evicted" : "needed");
  note(event);
  if (!can_go_on) {
    keeps_guilty_in_ = attempt;
    return false;
  }
  Txn txn = as_leader(seen);
  txn.compares.push_back(created_at(options_.keys.member(*guilty), member.created));
  constexpr std::int64_t kFirst = 60;  // seconds
  txn.then = {remove(options_.keys.member(*guilty)), quarantine(seen, host, kFirst)};
  if (*guilty == options_.self) txn.then.push_back(remove(options_.keys.leader()));
  send(std::move(txn), "evict " + name_of(*guilty) + ": what it computes cannot be trusted");
  return true;
}

// A window that is to be run again meets the same workers in the same seats, if they are there.
std::optional<Coordinator::Change> Coordinator::unchanged_plan(const Situation& seen, Tick now) const {
  const auto step = step_after_anomaly(seen);
  if (!step) return std::nullopt;
  const scheduler::Plan& plan = seen.generation->roster.plan;
  const std::vector<WorkerId> workers = eligible(seen, now);
  const auto is_there = [&](const WorkerId& id) { return has(workers, id); };
  if (!std::ranges::all_of(plan.workers, is_there) || !std::ranges::all_of(plan.spares, is_there)) return std::nullopt;
  return Change{plan, step->what};
}

void Coordinator::hand_on_anomalies(const Situation& seen, GenerationRecord& next) const {
  if (!seen.generation) return;
  const GenerationRecord& present = *seen.generation;
  const int window = present.roster.plan.window;
  next.left_out = present.left_out;
  if (seen.head) {
    const std::int64_t unfinished = seen.head->position.value / window * window;
    std::erase_if(next.left_out, [&](Position position) { return position.value < unfinished; });
  }
  const auto step = step_after_anomaly(seen);
  if (step && step->left_out) {
    const auto place = std::ranges::lower_bound(next.left_out, *step->left_out);
    next.left_out.insert(place, *step->left_out);
  }
  const std::optional<AnomalyTrial>& trial = step ? step->trial : present.trial;
  if (!trial) return;
  const bool same_bits = next.roster.plan == present.roster.plan && (step || trial->convicts);
  next.trial = carried_on(*trial, next.origin.position, window, same_bits);
}

}  // namespace everstep::elastic
