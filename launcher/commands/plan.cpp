#include <string>

#include "base/text.h"
#include "launcher/cli/table.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"
#include "launcher/job/planning_options.h"
#include "launcher/job/survival_text.h"
#include "scheduler/guards.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using scheduler::Candidate;
using scheduler::ModelProfile;
using scheduler::Plan;
using scheduler::PlanReport;
using storage::Json;

double to_gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }
double to_ms(Tick ticks) { return static_cast<double>(ticks) / 1e6; }

// What the user knows a worker by: the number it has in the order of hosts.
std::string worker_name(const WorkerId& id) { return std::to_string(id.words[1] - 1); }

std::string list_workers(const std::vector<WorkerId>& workers) {
  std::string list;
  for (const WorkerId& worker : workers) list += (list.empty() ? "" : ",") + worker_name(worker);
  return list.empty() ? "-" : list;
}

struct Request {
  PlanningInput planning;
  int workers = 0;
  int per_host = 1;
  int previous_workers = 0;
  std::size_t rows = 0;
  bool json = false;
};

Request read_request(const Config& config, Outcome& failure) {
  Request request;
  Values values(config);
  request.workers = static_cast<int>(values.integer("workers", {.min = 1, .max = kMostWorkers}));
  // As everstep train starts them.
  request.per_host = request.workers;
  if (config.is_set("per-host")) {
    request.per_host = static_cast<int>(values.integer("per-host", {.min = 1, .max = kMostWorkers}));
  }
  request.rows = static_cast<std::size_t>(values.integer("rows", {.min = 1, .max = 1'000'000}));
  request.json = values.flag("json");
  if (config.is_set("previous-workers")) {
    request.previous_workers = static_cast<int>(values.integer("previous-workers", {.min = 1, .max = kMostWorkers}));
  }
  failure = values.failure();
  if (!failure) request.planning = read_planning_input(config, request.workers, failure);
  return request;
}

std::vector<std::string> too_many(const Plan& plan) {
  std::vector<std::string> names;
  for (const WorkerId& id : one_loss_too_many(plan)) names.push_back(worker_name(id));
  return names;
}

double tokens_per_second(const ModelProfile& profile, const PlanReport& report) {
  return static_cast<double>(profile.tokens_per_minibatch) * report.minibatches_per_second();
}

std::string range_of_names(const std::string& first, const std::string& last) {
  return first == last ? first : first + " … " + last;
}

Table stage_table(const ModelProfile& profile, const PlanReport& report) {
  Table table;
  table.columns = {{"stage", Align::kRight},
                   {"blocks"},
                   {"forward ms", Align::kRight},
                   {"backward ms", Align::kRight},
                   {"parameters M", Align::kRight},
                   {"owner"},
                   {"guards"}};
  const Plan& plan = report.plan;
  const scheduler::Placement placement = placement_of(plan);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const scheduler::StageCost cost = stage_cost(profile, plan.cuts[stage], plan.cuts[stage + 1]);
    const std::int64_t parameters = cost.weight_bytes / profile.weight_bytes;
    const std::string& first = profile.blocks[plan.cuts[stage]].name;
    const std::string& last = profile.blocks[plan.cuts[stage + 1] - 1].name;
    table.rows.push_back({std::to_string(stage), range_of_names(first, last), fixed_text(to_ms(cost.forward), 2),
                          fixed_text(to_ms(cost.backward), 2), fixed_text(static_cast<double>(parameters) / 1e6, 1),
                          worker_name(plan.workers[placement.owner_of(stage)]),
                          plan.guards.empty() ? std::string() : list_workers(plan.guards[stage])});
  }
  return table;
}

Table candidate_table(const PlanReport& report, std::size_t rows) {
  Table table;
  table.columns = {{""},
                   {"schedule"},
                   {"D", Align::kRight},
                   {"P", Align::kRight},
                   {"W", Align::kRight},
                   {"window ms", Align::kRight},
                   {"busy", Align::kRight},
                   {"peak GiB", Align::kRight},
                   {"moves GiB", Align::kRight},
                   {"survives", Align::kRight}};
  table.key_columns = 5;
  for (const Candidate& candidate : report.candidates) {
    if (table.rows.size() == rows) break;
    const bool known = candidate.survives.has_value();
    table.rows.push_back(
        {candidate == report.chosen ? "*" : "", std::string(to_string(candidate.kind)), std::to_string(candidate.depth),
         std::to_string(candidate.pipelines), std::to_string(candidate.width),
         candidate.fits ? fixed_text(to_ms(candidate.window_time), 1) : "too big",
         candidate.fits ? fixed_text(candidate.busy, 3) : "", fixed_text(to_gib(candidate.peak_bytes), 2),
         known ? fixed_text(to_gib(*candidate.moved_bytes), 2) : "",
         known ? std::to_string(candidate.survives->workers) : ""});
  }
  return table;
}

// How clockwork uses its devices: what the other kinds fix, a plan of this kind chooses.
std::string clockwork_text(const Plan& plan) {
  const int pipelines = plan.pipelines;
  std::string text = "pipelines  " + std::to_string(pipelines) + ": a group has " + std::to_string(pipelines) +
                     (pipelines == 1 ? " replica" : " replicas") + " of each stage, and at most " +
                     std::to_string(plan.depth / pipelines) + " minibatches in flight at stage 0 of a pipeline\n";
  if (plan.lag > 0)
    text += "update     " + std::to_string(plan.lag) + " slots later than it could be, to hide reduces\n";
  return text;
}

std::string why_no_step(scheduler::NoStep reason) {
  switch (reason) {
    case scheduler::NoStep::kNotWished:
      break;
    case scheduler::NoStep::kWindows:
      return "its windows are too small for them, or never begin before the update of the one before";
    case scheduler::NoStep::kTime:
      return "with them updates would take more than 1 % longer";
    case scheduler::NoStep::kMemory:
      return "there is no memory for them";
    case scheduler::NoStep::kCopies:
      return "there is no memory for them beside the copies of --redundancy";
  }
  return {};
}

std::string provisional_text(const PlanReport& report) {
  if (report.no_step == scheduler::NoStep::kNotWished) return {};
  if (report.no_step) return "begins     on no provisional weights: " + why_no_step(*report.no_step) + "\n";
  const Plan& plan = report.plan;
  const int summed = provisional_minibatches(request_of(plan)).value_or(0);
  return "begins     on provisional weights, which " + std::to_string(summed) + " of " + std::to_string(plan.window) +
         " minibatches make\n";
}

void print_people(const Request& request, const PlanReport& report, Streams& streams) {
  std::ostream& out = streams.out;
  const ModelProfile& profile = request.planning.profile;
  const Plan& plan = report.plan;
  const Candidate& chosen = report.chosen;
  out << "model      " << profile.name << ", " << profile.blocks.size() << " blocks\n"
      << "workers    " << request.workers << ", " << request.per_host << " per host, "
      << fixed_text(to_gib(request.planning.options.hardware.memory_bytes), 1) << " GiB each\n"
      << "window     " << plan.window << " minibatches per update\n"
      << "plan       " << describe(plan.kind, plan.depth, plan.pipelines, plan.width) << "\n"
      << "time       " << fixed_text(to_ms(chosen.window_time), 1) << " ms per update, busy "
      << fixed_text(chosen.busy, 3);
  if (profile.tokens_per_minibatch > 0)
    out << ", " << fixed_text(tokens_per_second(profile, report) / 1e3, 1) << " ktokens/s";
  out << " (estimated)\n" << (is_clockwork(plan.kind) ? clockwork_text(plan) : "") << provisional_text(report);
  out << "memory     " << gib_text(chosen.peak_bytes) << " on the fullest worker, guard copies not counted\n"
      << "survives   " << survival_text(*chosen.survives, too_many(plan)) << "\n"
      << "spares     " << (plan.spares.empty() ? "none" : "workers " + list_workers(plan.spares)) << "\n";
  if (request.previous_workers > 0) {
    out << "moves      " << gib_text(*chosen.moved_bytes) << " from the plan for " << request.previous_workers
        << " workers\n";
  }
  out << "why        " << report.reason << "\n\n" << to_text(stage_table(profile, report), streams.out_columns) << "\n";
  out << to_text(candidate_table(report, request.rows), streams.out_columns);
  if (report.candidates.size() > request.rows) {
    out << "… " << report.candidates.size() - request.rows << " more (--rows)\n";
  }
}

Json candidate_json(const Candidate& candidate) {
  Json json = Json::object();
  json.set("kind", to_string(candidate.kind));
  json.set("depth", candidate.depth).set("pipelines", candidate.pipelines).set("width", candidate.width);
  if (is_clockwork(candidate.kind)) json.set("lag", candidate.lag);
  json.set("fits", candidate.fits).set("peak_bytes", candidate.peak_bytes);
  if (candidate.fits) json.set("window_ms", to_ms(candidate.window_time)).set("busy", candidate.busy);
  if (candidate.moved_bytes) json.set("moved_bytes", *candidate.moved_bytes);
  if (candidate.survives) {
    json.set("survives_workers", candidate.survives->workers).set("survives_hosts", candidate.survives->hosts);
  }
  return json;
}

Json workers_json(const std::vector<WorkerId>& workers) {
  Json json = Json::array();
  for (const WorkerId& worker : workers) json.append(static_cast<std::int64_t>(worker.words[1] - 1));
  return json;
}

Json report_json(const Request& request, const PlanReport& report) {
  const Plan& plan = report.plan;
  Json json = Json::object();
  json.set("model", request.planning.profile.name).set("workers", request.workers).set("window", plan.window);
  json.set("plan", candidate_json(report.chosen));
  json.set("minibatches_per_second", report.minibatches_per_second());
  json.set("tokens_per_second", tokens_per_second(request.planning.profile, report));
  Json cuts = Json::array();
  for (const int cut : plan.cuts) cuts.append(cut);
  Json guards = Json::array();
  for (const auto& stage : plan.guards) guards.append(workers_json(stage));
  json.set("cuts", cuts).set("seats", workers_json(plan.workers)).set("spares", workers_json(plan.spares));
  json.set("guards", guards).set("reason", report.reason);
  if (plan.provisional > 0) json.set("provisional", plan.provisional);
  Json candidates = Json::array();
  for (const Candidate& candidate : report.candidates) candidates.append(candidate_json(candidate));
  return json.set("candidates", candidates);
}

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  Request request = read_request(config, failure);
  if (failure) return failure;
  const PlanningInput& planning = request.planning;
  scheduler::PlanOptions options = planning.options;
  if (request.previous_workers > 0) {
    // The plan that ran before was free to choose its shape.
    scheduler::PlanOptions before = options;
    before.depth.reset();
    before.width.reset();
    before.kind.reset();
    before.pipelines.reset();
    auto previous = report_plan(planning.profile, unnamed_workers(request.previous_workers, request.per_host), before);
    if (!previous) return previous.error();
    options.previous = std::move(previous->plan);
  }
  const auto report = report_plan(planning.profile, unnamed_workers(request.workers, request.per_host), options);
  if (!report) return report.error();
  if (request.json) {
    streams.out << storage::to_text(report_json(request, *report)) << "\n";
  } else {
    print_people(request, *report, streams);
  }
  return {};
}

Outcome check(const Config& config) {
  Outcome failure;
  read_request(config, failure);
  return failure;
}

}  // namespace

Command plan_command() {
  CommandSpec spec;
  spec.name = "plan";
  spec.summary = "Show which worker would hold and do what";
  spec.text =
      "Chooses depth D, pipelines P and width W for a number of workers: every shape is timed with the model's profile "
      "and checked against memory, and the fastest that fits wins. Among plans within 3 % of it the one that moves the "
      "least state wins, then the one that survives the most losses.\n"
      "The same options tell everstep train to run this plan: names and defaults are the same. --device and what "
      "follows it is for workers that are made of something else than those of this host.\n"
      "Prints the plan with its estimates, the stages with the owner of their optimizer state, and the candidates.";
  spec.examples = {"everstep plan --workers=4",
                   "everstep plan --workers=7 --device=gpu --model=gpt2-small --precision=bf16 --window=128",
                   "everstep plan --workers=7 --previous-workers=8 --per-host=4 --device=gpu --model=gpt-1.56b --json"};
  spec.options = {
      {.name = "workers", .value_name = "N", .help = "Number of workers", .required = true},
      {.name = "per-host",
       .value_name = "N",
       .help = "Workers on one host, which are lost together; if not set, all of them, as everstep train starts them"},
      {.name = "previous-workers", .value_name = "N", .help = "Plan the change from the plan for N workers"},
  };
  for (OptionSpec& option : planning_options()) spec.options.push_back(std::move(option));
  spec.options.push_back({.name = "rows", .value_name = "N", .default_text = "12", .help = "Candidates to list"});
  spec.options.push_back({.name = "json", .help = "Print JSON instead of tables"});
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
