#include <cmath>
#include <utility>

#include "base/text.h"
#include "launcher/cli/json_number.h"
#include "launcher/cli/printable.h"
#include "launcher/cli/quantities.h"
#include "launcher/cli/table.h"
#include "launcher/job/survival_text.h"
#include "launcher/status/job_status.h"
#include "launcher/status/status_lines.h"
#include "trainer/socket/peer_address.h"

namespace everstep::launcher {
namespace {

using storage::Json;

std::string share_text(double share) { return std::isfinite(share) ? fixed_text(share, 2) : "unknown"; }

std::string plan_text(const scheduler::Plan& plan) {
  return describe(plan.kind, plan.depth, plan.pipelines, plan.width);
}

std::string origin_text(const elastic::Origin& origin) {
  switch (origin.kind) {
    case elastic::Origin::Kind::kBeginning:
      return "the beginning";
    case elastic::Origin::Kind::kCheckpoint:
      return "a checkpoint";
    case elastic::Origin::Kind::kMemory:
      return "memory";
    case elastic::Origin::Kind::kSums:
      return "what a group kept in memory";
    case elastic::Origin::Kind::kCopies:
      break;
  }
  return "copies in memory";
}

using Lines = StatusLines;  // what is unknown is left out

// By the median of the last updates; nothing while that is not known.
std::optional<double> seconds_left(const elastic::ProgressRecord& progress) {
  if (progress.update_us <= 0) return std::nullopt;
  return static_cast<double>(progress.update_us) / 1e6 * static_cast<double>(progress.steps - progress.step);
}

std::string left_text(const elastic::ProgressRecord& progress) {
  const auto seconds = seconds_left(progress);
  return seconds && *seconds > 0 ? ", " + duration_text(*seconds) + " left" : "";
}

std::string validation_text(const elastic::ProgressRecord& progress) {
  return progress.validation_loss ? ", validation loss " + loss_text(*progress.validation_loss) : "";
}

std::string skipped_text(const elastic::ProgressRecord& progress) {
  return progress.skipped > 0 ? ", " + counted(progress.skipped, "update", "updates") + " skipped so far" : "";
}

// A host, or the address of one worker.
std::string who_is_shut_out(const QuarantinedHost& one) {
  const auto address = trainer::parse_peer_address(one.host);
  return address && !address->tcp ? address->local->path : trainer::shown_address(one.host);
}

void add_progress(const JobStatus& status, Lines& lines) {
  if (!status.progress) return;
  const elastic::ProgressRecord& progress = *status.progress;
  lines.add("step", std::to_string(progress.step) + " of " + std::to_string(progress.steps) + ", loss " +
                        loss_text(progress.loss) + left_text(progress));
  lines.add("update", "learning rate " + rate_text(progress.learning_rate) + ", gradient norm " +
                          loss_text(progress.gradient_norm) + validation_text(progress) + skipped_text(progress));
  lines.add("speed", (std::isfinite(progress.tokens_per_second) ? speed_text(progress.tokens_per_second) : "unknown") +
                         ", busy " + share_text(progress.busy) + ", goodput " + share_text(progress.goodput));
}

void add_straggler(const JobStatus& status, Lines& lines) {
  if (status.straggler) lines.add("straggler", *status.straggler);
}

void add_generation(const JobStatus& status, Lines& lines) {
  if (status.generation) {
    const elastic::GenerationRecord& generation = *status.generation;
    lines.add("generation", std::to_string(generation.roster.attempt.generation.value) + ", " +
                                plan_text(generation.roster.plan) + ", from " + origin_text(generation.origin) +
                                (generation.reason.empty() ? "" : ": " + generation.reason));
  }
  if (status.state == "training") {
    lines.add("survives", survival_text(status.survives.value_or(scheduler::Survival{}), status.too_many));
  }
  if (const WorkerStatus* leader = status.leader()) {
    lines.add("leader", leader->record.name + " (" + short_id(leader->record.id) + ")");
  }
}

void add_head(const JobStatus& status, Lines& lines) {
  if (!status.head) {
    lines.add("HEAD", "no checkpoint yet");
    return;
  }
  lines.add("HEAD", head_text(status.head_step, status.head->position, status.head->sequence, status.head->generation));
  if (!status.resume.empty()) lines.add("resume", status.resume);
}

void add_change(const JobStatus& status, Lines& lines) {
  if (status.coming) {
    const elastic::RosterRecord& roster = status.coming->roster;
    lines.add("coming", "generation " + std::to_string(roster.attempt.generation.value) + ", " +
                            plan_text(roster.plan) + ", " + std::to_string(status.coming->connected) + " of " +
                            std::to_string(roster.connected().size()) + " are connected");
  }
  if (status.drain) {
    lines.add("drain", std::string(status.drain->inside_window ? "inside the window" : "at the window's end") +
                           (status.drain->saves || status.drain->ends_job ? ", with a checkpoint" : "") + ": " +
                           status.drain->reason);
  }
  if (status.generation && !status.generation->left_out.empty()) {
    std::string positions;
    for (const Position& one : status.generation->left_out) positions += " " + std::to_string(one.value);
    lines.add("left out", "minibatches since HEAD that gave no finite numbers:" + positions);
  }
  for (const QuarantinedHost& one : status.quarantines) {
    lines.add("shut out", who_is_shut_out(one) + " for " + std::to_string(one.record.seconds) +
                              " s after its last strike, " + std::to_string(one.record.strikes) +
                              (one.record.strikes == 1 ? " time so far" : " times so far"));
  }
}

std::string number_or_dash(const std::optional<int>& number) { return number ? std::to_string(*number) : "-"; }

std::string state_of(const WorkerStatus& worker) {
  if (worker.state != "leaving" || worker.record.leave_reason.empty()) return worker.state;
  return worker.state + ": " + worker.record.leave_reason;
}

// "0: 1.2, 3: 4.5", by stage.
std::string stage_times_text(const WorkerStatus& worker) {
  std::string text;
  for (const StageTime& time : worker.stage_times) {
    text += (text.empty() ? "" : ", ") + std::to_string(time.stage) + ": " + fixed_text(time.ms, 1);
  }
  return text.empty() ? "-" : text;
}

Table worker_table(const JobStatus& status) {
  Table table;
  table.columns = {{"worker"}, {"id"},      {"group", Align::kRight},      {"device", Align::kRight},
                   {"host"},   {"address"}, {"compute ms", Align::kRight}, {"ms by stage"},
                   {"state"}};
  for (const WorkerStatus& worker : status.workers) {
    table.rows.push_back({printable(worker.record.name), short_id(worker.record.id), number_or_dash(worker.group),
                          number_or_dash(worker.device), printable(worker.record.host),
                          printable(trainer::shown_address(worker.record.address)),
                          worker.computed_ms ? fixed_text(*worker.computed_ms, 1) : "-", stage_times_text(worker),
                          printable(state_of(worker))});
  }
  return table;
}

Json number_or_null(const std::optional<int>& number) { return number ? Json(*number) : Json(nullptr); }

Json plan_json(const scheduler::Plan& plan) {
  return Json::object()
      .set("schedule", to_string(plan.kind))
      .set("depth", plan.depth)
      .set("pipelines", plan.pipelines)
      .set("width", plan.width)
      .set("window", plan.window)
      .set("workers", plan.workers.size())
      .set("spares", plan.spares.size());
}

Json progress_json(const elastic::ProgressRecord& progress) {
  return Json::object()
      .set("step", progress.step)
      .set("steps", progress.steps)
      .set("seconds_left", seconds_left(progress) ? Json(*seconds_left(progress)) : Json(nullptr))
      .set("loss", finite_or_null(progress.loss))
      .set("validation_loss", progress.validation_loss ? finite_or_null(*progress.validation_loss) : Json(nullptr))
      .set("learning_rate", finite_or_null(progress.learning_rate))
      .set("gradient_norm", finite_or_null(progress.gradient_norm))
      .set("skipped", progress.skipped)
      .set("tokens_per_second", finite_or_null(progress.tokens_per_second))
      .set("busy", finite_or_null(progress.busy))
      .set("goodput", finite_or_null(progress.goodput));
}

template <typename Items, typename Function>
Json array_of(const Items& items, Function function) {
  Json array = Json::array();
  for (const auto& item : items) array.append(function(item));
  return array;
}

Json generation_json(const elastic::GenerationRecord& generation) {
  return Json::object()
      .set("number", generation.roster.attempt.generation.value)
      .set("plan", plan_json(generation.roster.plan))
      .set("from", origin_text(generation.origin))
      .set("position", generation.origin.position.value)
      .set("reason", generation.reason)
      .set("left_out", array_of(generation.left_out, [](const Position& one) { return Json(one.value); }));
}

Json head_json(const JobStatus& status) {
  return Json::object()
      .set("step", status.head_step ? Json(*status.head_step) : Json(nullptr))
      .set("position", status.head->position.value)
      .set("sequence", status.head->sequence)
      .set("generation", status.head->generation.value)
      .set("manifest", status.head->manifest);
}

Json survival_json(const JobStatus& status) {
  if (!status.survives) return Json(nullptr);
  Json names = Json::array();
  for (const std::string& name : status.too_many) names.append(Json(name));
  return Json::object()
      .set("workers", status.survives->workers)
      .set("hosts", status.survives->hosts)
      .set("too_many", std::move(names));
}

Json worker_json(const WorkerStatus& worker) {
  Json stages = Json::array();
  for (const StageTime& time : worker.stage_times) {
    stages.append(Json::object().set("stage", time.stage).set("ms", time.ms));
  }
  return Json::object()
      .set("name", worker.record.name)
      .set("id", to_string(worker.record.id))
      .set("host", worker.record.host)
      .set("address", worker.record.address)
      .set("state", worker.state)
      .set("leave_reason", worker.record.leave_reason)
      .set("group", number_or_null(worker.group))
      .set("device", number_or_null(worker.device))
      .set("compute_ms", worker.computed_ms ? Json(*worker.computed_ms) : Json(nullptr))
      .set("stages", std::move(stages))
      .set("slowness", worker.slowness ? Json(*worker.slowness) : Json(nullptr))
      .set("leads", worker.leads);
}

Json coming_json(const ComingGeneration& coming) {
  return Json::object()
      .set("number", coming.roster.attempt.generation.value)
      .set("plan", plan_json(coming.roster.plan))
      .set("connected", coming.connected)
      .set("to_connect", coming.roster.connected().size());
}

Json drain_json(const elastic::DrainRecord& drain) {
  return Json::object()
      .set("inside_window", drain.inside_window)
      .set("saves", drain.saves || drain.ends_job)
      .set("ends_job", drain.ends_job)
      .set("reason", drain.reason);
}

Json quarantine_json(const QuarantinedHost& one) {
  return Json::object().set("host", one.host).set("strikes", one.record.strikes).set("seconds", one.record.seconds);
}

}  // namespace

std::string status_text(const JobStatus& status, std::size_t columns) {
  Lines lines;
  add_progress(status, lines);
  add_straggler(status, lines);
  add_generation(status, lines);
  add_head(status, lines);
  add_change(status, lines);
  std::string text = "job " + status.job + ": " + printable(status.state) +
                     (status.why.empty() ? "" : " (" + printable(status.why) + ")") + "\n" + lines.take();
  if (!status.workers.empty()) text += "\n" + to_text(worker_table(status), columns);
  return text +
         (status.is_checked ? "authenticity checked\n" : "authenticity not checked: there is no --secret-file\n");
}

Json status_json(const JobStatus& status) {
  Json json = Json::object().set("job", status.job).set("state", status.state).set("why", status.why);
  json.set("build", status.spec ? Json(status.spec->build) : Json(nullptr))
      .set("lineage", status.spec ? Json(hex_text(status.spec->lineage)) : Json(nullptr))
      .set("progress", status.progress ? progress_json(*status.progress) : Json(nullptr))
      .set("survives", survival_json(status))
      .set("straggler", status.straggler ? Json(*status.straggler) : Json(nullptr))
      .set("generation", status.generation ? generation_json(*status.generation) : Json(nullptr))
      .set("leader", status.leader() == nullptr ? Json(nullptr) : Json(to_string(status.leader()->record.id)))
      .set("head", status.head ? head_json(status) : Json(nullptr))
      .set("resume", status.resume.empty() ? Json(nullptr) : Json(status.resume))
      .set("coming", status.coming ? coming_json(*status.coming) : Json(nullptr))
      .set("drain", status.drain ? drain_json(*status.drain) : Json(nullptr))
      .set("quarantines", array_of(status.quarantines, quarantine_json))
      .set("workers", array_of(status.workers, worker_json))
      .set("authenticity", status.is_checked ? "checked" : "not checked");
  return json;
}

}  // namespace everstep::launcher
