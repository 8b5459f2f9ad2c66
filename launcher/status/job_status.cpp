#include "launcher/status/job_status.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "scheduler/guards.h"
#include "storage/documents.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

using elastic::MemberState;
using elastic::Situation;

// Where the workers of a job stand.
struct Count {
  int min_workers = 1;
  int usable = 0;  // ready, and not about to leave
  int warming = 0;
};

std::string workers_text(std::int64_t workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

const std::string* setting(const std::optional<elastic::JobSpec>& spec, std::string_view name) {
  if (!spec) return nullptr;
  const auto found =
      std::find_if(spec->settings.begin(), spec->settings.end(), [&](const auto& one) { return one.first == name; });
  return found == spec->settings.end() ? nullptr : &found->second;
}

std::int64_t number(const std::optional<elastic::JobSpec>& spec, std::string_view name, std::int64_t otherwise) {
  const std::string* text = setting(spec, name);
  return text == nullptr ? otherwise : parse_number<std::int64_t>(*text).value_or(otherwise);
}

// Hashes are checked; who wrote it is what the workers check.
std::optional<elastic::JobSpec> read_spec(const elastic::View& view, const elastic::Keys& keys) {
  const elastic::KeyValue* item = view.find(keys.spec());
  if (item == nullptr) return std::nullopt;
  const auto hashing = storage::make_openssl_hashing();
  const auto text = storage::Seal(*hashing, "").open(item->value);
  if (!text) return std::nullopt;
  auto spec = elastic::parse_job_spec(*text);
  return spec ? std::optional(std::move(spec).value()) : std::nullopt;
}

// Without seals, and without what is forged if the secret tells.
elastic::View opened(const elastic::View& stored, const elastic::Keys& keys, const JobSecret& secret) {
  const elastic::KeyValue* spec = stored.find(keys.spec());
  elastic::TxnReply items;
  items.reads.emplace_back();
  for (const elastic::KeyValue* item : stored.below(keys.prefix())) items.reads[0].push_back(*item);
  if (spec != nullptr) items = secret.record_seal(keys, spec->value).open(std::move(items));
  elastic::View view;
  view.replace(std::move(items.reads[0]), stored.revision(), std::move(items.forged));
  return view;
}

template <typename Record>
std::optional<Record> read_record(const elastic::View& view, const std::string& key,
                                  Result<Record> (*parse)(std::string_view)) {
  const elastic::KeyValue* item = view.find(key);
  if (item == nullptr) return std::nullopt;
  auto record = parse(item->value);
  return record ? std::optional(std::move(record).value()) : std::nullopt;
}

template <typename Container>
std::optional<int> place_in(const Container& ids, const WorkerId& id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  if (found == ids.end()) return std::nullopt;
  return static_cast<int>(found - ids.begin());
}

WorkerStatus worker_status(const elastic::MemberRecord& member, const Situation& seen) {
  WorkerStatus worker;
  worker.record = member;
  worker.state = member.state == MemberState::kWarming ? "warming" : "standing by";
  if (seen.generation) {
    const elastic::RosterRecord& roster = seen.generation->roster;
    const auto seat = place_in(roster.plan.workers, member.id);
    if (seat) {
      worker.group = *seat / roster.plan.depth;
      worker.device = *seat % roster.plan.depth;
      worker.state = seen.ready.contains(member.id) ? "training" : "starting";
    } else if (place_in(roster.plan.spares, member.id)) {
      worker.state = "spare";
    } else if (place_in(roster.donors, member.id)) {
      worker.state = "handing over";
    }
  }
  if (member.state == MemberState::kLeaving) worker.state = "leaving";
  return worker;
}

auto rank_of(const WorkerStatus& worker) {
  constexpr int kNoSeat = 1 << 30;
  return std::tuple(worker.group.value_or(kNoSeat), worker.device.value_or(kNoSeat), worker.state != "spare",
                    worker.record.name, worker.record.id);
}

Count count_of(const Situation& seen, const std::optional<elastic::JobSpec>& spec) {
  Count count;
  count.min_workers = static_cast<int>(std::clamp<std::int64_t>(number(spec, "min-workers", 1), 1, 1 << 20));
  for (const auto& [id, member] : seen.members) {
    if (member.record.state == MemberState::kReady) ++count.usable;
    if (member.record.state == MemberState::kWarming) ++count.warming;
  }
  return count;
}

std::string what_is_missing(const Count& count) {
  std::string text = workers_text(count.min_workers - count.usable) + " more: ";
  text += std::to_string(count.usable) + " ready, --min-workers=" + std::to_string(count.min_workers);
  if (count.warming > 0) text += ", " + std::to_string(count.warming) + " warming";
  return text;
}

// Nobody trains: why not.
void explain_rest(const Situation& seen, const Count& count, JobStatus& status) {
  if (count.usable < count.min_workers) {
    status.state = "waiting for workers";
    status.why = what_is_missing(count);
  } else {
    status.state = seen.generation ? "recovering" : "starting";
  }
}

void tell_state(const Situation& seen, bool is_finished, JobStatus& status) {
  if (is_finished) {
    status.state = "finished";
  } else if (seen.is_damaged || !status.spec) {
    status.state = "damaged";
    status.why = status.spec ? "its generation or its HEAD cannot be read, or is forged" : "its spec cannot be read";
  } else if (seen.members.empty() && seen.drain && seen.drain->ends_job) {
    status.state = "stopped";
    status.why = seen.drain->reason;
  } else if (seen.members.empty()) {
    status.state = "no workers";
    status.why = "everstep worker adds one";
  } else if (seen.drain || seen.stop_asked) {
    status.state = seen.stop_asked || seen.drain->ends_job ? "stopping" : "draining";
    status.why = seen.drain ? seen.drain->reason : "it was asked to stop";
  } else if (!seen.generation || seen.live_workers().size() < seen.generation->roster.plan.workers.size()) {
    explain_rest(seen, count_of(seen, status.spec), status);
  } else if (seen.ready.size() < seen.generation->roster.plan.workers.size()) {
    status.state = "starting";
    status.why = std::to_string(seen.ready.size()) + " of " +
                 workers_text(std::ssize(seen.generation->roster.plan.workers)) + " have the state in place";
  } else {
    status.state = "training";
  }
}

void read_workers(const elastic::View& view, const elastic::Keys& keys, const Situation& seen, JobStatus& status) {
  const auto leader = elastic::read_leader(view, keys);
  for (const auto& [id, member] : seen.members) {
    status.workers.push_back(worker_status(member.record, seen));
    status.workers.back().leads = leader && leader->id == id;
  }
  std::sort(status.workers.begin(), status.workers.end(),
            [](const WorkerStatus& a, const WorkerStatus& b) { return rank_of(a) < rank_of(b); });
}

void tell_survival(const Situation& seen, JobStatus& status) {
  if (status.state != "training") return;
  const scheduler::Plan& plan = seen.generation->roster.plan;
  if (!keeps_copies(plan, static_cast<int>(number(status.spec, "redundancy", 1)))) return;
  std::map<WorkerId, std::string> host_of;
  for (const WorkerId& id : plan.workers) host_of[id] = seen.members.at(id).record.host;
  status.survives = survival_by_copies(plan, host_of);
  for (const WorkerId& id : one_loss_too_many(plan)) status.too_many.push_back(seen.members.at(id).record.name);
}

// Stages differ, too: a head may cost as much as some blocks.
constexpr double kStraggles = 5;
constexpr double kIsSlow = 2;  // where what the stages cost is reckoned with

// By the times of its stages.
void tell_speed(const Situation& seen, std::size_t seat, WorkerStatus& worker) {
  if (!seen.progress) return;
  const scheduler::Plan& plan = seen.generation->roster.plan;
  const scheduler::Placement placement = placement_of(plan);
  const std::vector<int>& stages = placement.stages_on(*worker.device);
  const std::vector<int>& times = seen.progress->stage_us;
  if (times.size() == plan.workers.size() * stages.size()) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      worker.stage_times.push_back({stages[i], times[seat * stages.size() + i] / 1e3});
    }
  }
  const std::vector<int>& slowness = seen.progress->slowness_percent;
  if (slowness.size() == plan.workers.size() && slowness[seat] > 0) worker.slowness = slowness[seat] / 1e2;
}

void tell_times(const Situation& seen, JobStatus& status) {
  if (!status.progress || !seen.generation) return;
  const std::vector<int>& times = status.progress->computed_us;
  const scheduler::Plan& plan = seen.generation->roster.plan;
  if (times.size() != plan.workers.size()) return;  // of another generation
  std::vector<int> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const double usual = sorted[(sorted.size() - 1) / 2];
  double slowest = kIsSlow;
  for (WorkerStatus& worker : status.workers) {
    if (!worker.group) continue;
    const std::size_t seat = *worker.group * plan.depth + *worker.device;
    const int time = times[seat];
    worker.computed_ms = time / 1e3;
    tell_speed(seen, seat, worker);
    if (worker.slowness && *worker.slowness >= slowest) {
      slowest = *worker.slowness;
      status.straggler = worker.record.name + " is " + fixed_text(slowest, 1) + " times slower than the median worker";
    }
    if (worker.slowness) continue;
    if (time != sorted.back() || usual <= 0 || time <= kStraggles * usual) continue;
    status.straggler =
        worker.record.name + " computes " + fixed_text(time / usual, 1) + " times as long as the median worker";
  }
}

std::size_t connected_members(const Situation& seen) {
  return static_cast<std::size_t>(
      std::count_if(seen.prepared.begin(), seen.prepared.end(), [](const auto& one) { return one.second.connected; }));
}

}  // namespace

std::string short_id(const WorkerId& id) {
  constexpr std::size_t kDigits = 8;
  return to_string(id).substr(0, kDigits);
}

std::string checkpoints_of(const JobStatus& status) {
  const std::string* directory = setting(status.spec, "checkpoint-dir");
  return directory == nullptr ? "" : *directory + "/" + status.job;
}

const WorkerStatus* JobStatus::leader() const {
  const auto found = std::find_if(workers.begin(), workers.end(), [](const WorkerStatus& one) { return one.leads; });
  return found == workers.end() ? nullptr : &*found;
}

JobStatus read_job_status(const elastic::View& stored, const std::string& job, const JobSecret& secret) {
  return read_opened_status(opened(stored, elastic::Keys(job), secret), job, secret.is_set());
}

JobStatus read_opened_status(const elastic::View& view, const std::string& job, bool is_checked) {
  const elastic::Keys keys(job);
  const Situation seen = read_situation(view, keys);
  JobStatus status;
  status.job = job;
  status.is_checked = is_checked;
  status.spec = read_spec(view, keys);
  status.progress = read_record(view, keys.progress(), &elastic::parse_progress);
  status.generation = seen.generation;
  status.head = seen.head;
  const std::int64_t window = number(status.spec, "window", 0);
  if (seen.head && window > 0) status.head_step = seen.head->position.value / window;
  status.drain = seen.drain;
  if (seen.proposal) status.coming = ComingGeneration{*seen.proposal, connected_members(seen)};
  for (const auto& [host, quarantine] : seen.quarantines) status.quarantines.push_back({host, quarantine.record});
  read_workers(view, keys, seen, status);
  tell_state(seen, view.find(keys.finished()) != nullptr, status);
  tell_survival(seen, status);
  tell_times(seen, status);
  return status;
}

}  // namespace everstep::launcher
