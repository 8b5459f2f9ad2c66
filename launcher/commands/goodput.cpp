#include "scheduler/goodput.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/output_file.h"
#include "launcher/cli/table.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"
#include "launcher/job/planning_options.h"
#include "scheduler/draw/goodput_svg.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using scheduler::Goodput;
using scheduler::MembershipTrace;
using scheduler::PlanRate;
using storage::Json;

constexpr std::size_t kMostCosts = 7;  // as many as there are colours for
constexpr int kSamples = 400;

struct Request {
  PlanningInput planning;
  std::vector<double> costs;  // in seconds
  int min_workers = 1;
  std::string path;
  MembershipTrace trace;
  bool json = false;
};

// A file that cannot be read is the option's fault, one that makes no sense is not.
MembershipTrace read_trace(const Config& config, const std::string& path, Outcome& failure) {
  const auto text = read_file(path, scheduler::kMaxTraceBytes);
  if (!text) {
    failure = config.blame("trace", text.error());
    return {};
  }
  auto trace = scheduler::parse_membership_trace(*text);
  if (!trace) {
    failure = Failure(invalid_argument(path + ": " + trace.error().message, trace.error().hint));
    return {};
  }
  if (trace->max_workers() > kMostWorkers) {
    failure = Failure(invalid_argument(path + ": " + std::to_string(trace->max_workers()) +
                                       " workers at once, more than " + std::to_string(kMostWorkers)));
  }
  return *std::move(trace);
}

Request read_request(const Config& config, Outcome& failure) {
  Request request;
  // A worker of a spot market has a host of its own.
  request.planning = read_planning_input(config, 1, failure);
  if (failure) return request;
  Values values(config);
  request.path = values.path("trace");
  request.costs = values.numbers("cost", {.min = 0, .max = 1e6});
  request.min_workers = static_cast<int>(values.integer("min-workers", {.min = 1, .max = kMostWorkers}));
  request.json = values.flag("json");
  if (config.is_set("svg")) values.path("svg");
  failure = values.failure();
  if (failure) return request;
  if (request.costs.size() > kMostCosts) {
    failure = config.reject("cost", "at most " + std::to_string(kMostCosts) + " costs");
    return request;
  }
  request.trace = read_trace(config, request.path, failure);
  return request;
}

// Plans for each number of workers once, however many predictions ask.
class Rates {
 public:
  explicit Rates(const PlanningInput& planning) : planning_(planning) {}

  const PlanRate& of(int workers) {
    const auto known = rates_.find(workers);
    if (known != rates_.end()) return known->second;
    const auto report = report_plan(planning_.profile, unnamed_workers(workers), planning_.options);
    if (!report) failure_ = report.error();
    PlanRate rate{0, "no plan"};
    if (report) {
      const scheduler::Plan& chosen = report->plan;
      rate = {report->minibatches_per_second(), describe(chosen.kind, chosen.depth, chosen.pipelines, chosen.width)};
    }
    return rates_.emplace(workers, std::move(rate)).first->second;
  }

  // Why some number of workers has no plan.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  const PlanningInput& planning_;
  std::map<int, PlanRate> rates_;
  std::optional<Error> failure_;
};

struct GoodputRun {
  double cost = 0;
  Goodput goodput;
};

double hours(double seconds) { return seconds / 3600; }
double duration_seconds(const MembershipTrace& trace) { return static_cast<double>(trace.duration_ms) / 1000; }

std::string trace_line(const MembershipTrace& trace) {
  return std::to_string(trace.changes()) + " changes in " + fixed_text(hours(duration_seconds(trace)), 1) + " h, " +
         fixed_text(trace.mean_workers(), 1) + " workers on average, at most " + std::to_string(trace.max_workers());
}

std::string cost_text(double seconds) { return number_text(seconds, 3); }

Table cost_table(const Request& request, const std::vector<GoodputRun>& runs) {
  Table table;
  table.columns = {{"s per change", Align::kRight}, {"goodput", Align::kRight}, {"stalled h", Align::kRight},
                   {"of the time", Align::kRight},  {"changes", Align::kRight}, {"minibatches", Align::kRight},
                   {"ideal", Align::kRight}};
  for (const auto& [cost, goodput] : runs) {
    table.rows.push_back(
        {cost_text(cost), fixed_text(goodput.fraction(), 4), fixed_text(hours(goodput.stalled_seconds), 3),
         fixed_text(goodput.stalled_seconds / duration_seconds(request.trace), 4), std::to_string(goodput.changes),
         fixed_text(goodput.actual_minibatches, 0), fixed_text(goodput.ideal_minibatches, 0)});
  }
  return table;
}

Table plan_table(const Goodput& goodput) {
  Table table;
  table.columns = {{"plan"}, {"hours", Align::kRight}, {"of the time", Align::kRight}};
  for (const scheduler::PlanShare& plan : goodput.plans) {
    table.rows.push_back({plan.label, fixed_text(hours(plan.seconds), 3), fixed_text(plan.share, 4)});
  }
  return table;
}

void print_people(const Request& request, const std::vector<GoodputRun>& runs, Streams& streams) {
  std::ostream& out = streams.out;
  out << "trace      " << request.path << "\n           " << trace_line(request.trace) << "\n";
  if (request.trace.overruled_lines > 0) {
    out << "           " << request.trace.overruled_lines << " counts that a later line for the same time replaced\n";
  }
  out << "model      " << request.planning.profile.name << ", window " << request.planning.options.window << "\n\n"
      << to_text(cost_table(request, runs), streams.out_columns) << "\n"
      << to_text(plan_table(runs.front().goodput), streams.out_columns);
}

Json to_json(const Request& request, const std::vector<GoodputRun>& runs) {
  const MembershipTrace& trace = request.trace;
  Json json = Json::object();
  json.set("trace", request.path).set("duration_seconds", duration_seconds(trace)).set("changes", trace.changes());
  json.set("mean_workers", trace.mean_workers()).set("max_workers", trace.max_workers());
  json.set("overruled_lines", trace.overruled_lines).set("model", request.planning.profile.name);
  json.set("window", request.planning.options.window);
  Json costs = Json::array();
  for (const auto& [cost, goodput] : runs) {
    Json row = Json::object();
    row.set("seconds_per_change", cost).set("goodput", goodput.fraction());
    row.set("stalled_seconds", goodput.stalled_seconds).set("idle_seconds", goodput.idle_seconds);
    row.set("minibatches", goodput.actual_minibatches).set("ideal_minibatches", goodput.ideal_minibatches);
    costs.append(std::move(row));
  }
  Json plans = Json::array();
  for (const scheduler::PlanShare& plan : runs.front().goodput.plans) {
    plans.append(Json::object().set("plan", plan.label).set("seconds", plan.seconds).set("share", plan.share));
  }
  return json.set("costs", std::move(costs)).set("plans", std::move(plans));
}

std::string picture(const Request& request, const std::vector<GoodputRun>& runs) {
  std::vector<scheduler::GoodputCurve> curves;
  for (const auto& [cost, goodput] : runs) curves.push_back({cost_text(cost) + " s per change", goodput});
  const std::string name = request.path.substr(request.path.rfind('/') + 1);
  return draw_svg(request.trace, curves,
                  {"Goodput of " + request.planning.profile.name + " on " + name, trace_line(request.trace)});
}

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  const Request request = read_request(config, failure);
  if (failure) return failure;
  Rates rates(request.planning);
  std::vector<GoodputRun> runs;
  for (const double cost : request.costs) {
    const scheduler::GoodputOptions options{std::llround(cost * 1000), request.min_workers, kSamples};
    runs.push_back({cost, predict_goodput(request.trace, options, [&](int workers) { return rates.of(workers); })});
  }
  if (runs.front().goodput.ideal_minibatches == 0) {
    if (rates.failure()) return *rates.failure();
    return config.reject("min-workers", "the trace never has so many workers");
  }
  if (config.is_set("svg")) failure = write_output_file(config, "svg", picture(request, runs), streams);
  if (failure) return failure;
  if (request.json) {
    streams.out << storage::to_text(to_json(request, runs)) << "\n";
  } else {
    print_people(request, runs, streams);
  }
  return {};
}

Outcome check(const Config& config) {
  Outcome failure;
  read_request(config, failure);
  return failure;
}

}  // namespace

Command goodput_command() {
  CommandSpec spec;
  spec.name = "goodput";
  spec.summary = "Estimate the goodput on workers that come and go";
  spec.text =
      "Plays a trace of workers that join and leave. Each number of workers trains at the rate of its best plan; after "
      "each change nothing is done for the cost of a change, and a change in that time starts it anew. Every change "
      "costs, also one that only takes or adds a spare. The goodput is the work done as a share of what changes that "
      "cost nothing would allow.\n"
      "A trace has lines 'milliseconds,add|remove,node' or 'date, time, number of workers'.";
  spec.examples = {"everstep goodput --trace=p3-trace.csv --cost=51.6,5,2 --svg=goodput.svg",
                   "everstep goodput --trace=p3-trace.csv --model=gpt-1.56b --precision=bf16 --memory-gib=80 "
                   "--window=256 --json"};
  spec.options = {
      {.name = "trace", .value_name = "FILE", .help = "Who was there when", .required = true},
      {.name = "cost",
       .value_name = "SECONDS",
       .default_text = "51.6,5,2",
       .help = "Costs of a change to simulate, with commas between them"},
      {.name = "min-workers", .value_name = "N", .default_text = "1", .help = "With fewer workers nothing runs"},
  };
  for (OptionSpec& option : planning_options()) {
    if (option.name == "device") option.default_text = "gpu";  // what spot markets are about
    spec.options.push_back(std::move(option));
  }
  spec.options.push_back(
      {.name = "svg", .value_name = "FILE", .help = "Also write a picture over time", .command_line_only = true});
  spec.options.push_back({.name = "json", .help = "Print JSON instead of tables"});
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
