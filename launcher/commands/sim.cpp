#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/text.h"
#include "elastic/sim/simulation.h"
#include "launcher/cli/progress_line.h"
#include "launcher/cli/table.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"

namespace everstep::launcher {
namespace {

using elastic::sim::Fault;
using elastic::sim::SimulationReport;

constexpr std::int64_t kSeedsUnlessTold = 100;

struct Request {
  std::int64_t first = 0;
  std::int64_t seeds = 0;
  std::optional<double> seconds;
  bool trace = false;
};

struct Totals {
  std::int64_t seeds = 0;
  elastic::sim::FaultCounts faults;
  Tick simulated = 0;
  std::int64_t commits = 0;
  std::int64_t generations = 0;
  std::int64_t recoveries = 0;
  std::int64_t resumes = 0;

  void add(const SimulationReport& report) {
    ++seeds;
    faults.add(report.faults);
    simulated += report.simulated;
    commits += report.commits;
    generations += report.generations;
    recoveries += report.recoveries;
    resumes += report.resumes;
  }
};

Request read_request(const Config& config, Values& values) {
  Request request;
  request.first = values.integer("seed", {.min = 0});
  request.trace = values.flag("trace");
  if (config.is_set("seconds")) request.seconds = values.number("seconds", {.min = 0, .max = 1e6, .above_min = true});
  request.seeds = request.trace ? 1 : kSeedsUnlessTold;
  if (request.seconds) request.seeds = std::numeric_limits<std::int64_t>::max();
  if (config.is_set("seeds")) request.seeds = values.integer("seeds", {.min = 1});
  return request;
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string totals_text(const Totals& totals) {
  return std::to_string(totals.seeds) + (totals.seeds == 1 ? " seed, " : " seeds, ") +
         fixed_text(to_seconds(totals.simulated) / 3600, 1) + " simulated hours, " + std::to_string(totals.commits) +
         " checkpoints, " + std::to_string(totals.generations) + " generations, " + std::to_string(totals.recoveries) +
         " recoveries from memory, " + std::to_string(totals.resumes) + " resumed by hand";
}

Table fault_table(const elastic::sim::FaultCounts& counts, bool shows_all) {
  Table table;
  table.columns = {{"fault"}, {"what"}, {"times", Align::kRight}};
  for (const Fault fault : elastic::sim::all_faults()) {
    if (!shows_all && counts.of(fault) == 0) continue;
    table.rows.push_back(
        {"F" + std::to_string(number_of(fault)), std::string(to_string(fault)), std::to_string(counts.of(fault))});
  }
  return table;
}

Error violation_of(std::int64_t seed, const std::string& what) {
  return {ErrorCode::kInternal, "seed " + std::to_string(seed) + " violates " + what,
          "everstep sim --seed=" + std::to_string(seed) + " --trace replays it, one line per event"};
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const Request request = read_request(config, values);
  if (values.failure()) return values.failure();
  const Clock clock;
  ProgressLine progress(streams);
  Totals totals;
  double shown = 0;
  for (std::int64_t at = 0; at < request.seeds; ++at) {
    if (request.seconds && clock.seconds() >= *request.seconds) break;
    const std::int64_t seed = request.first + at;
    elastic::sim::SimulationOptions options;
    options.seed = static_cast<std::uint64_t>(seed);
    if (request.trace) options.trace = [&](const std::string& line) { streams.out << line << "\n"; };
    const SimulationReport report = simulate(options);
    totals.add(report);
    if (report.violation) return violation_of(seed, *report.violation);
    if (clock.seconds() < shown + 0.5) continue;
    shown = clock.seconds();
    progress.show("simulating  " + totals_text(totals));
  }
  progress.clear();
  streams.out << (request.trace ? "\n" : "") << totals_text(totals) << ": all oracles hold\n\n"
              << to_text(fault_table(totals.faults, !request.trace), streams.out_columns);
  return {};
}

Outcome check(const Config& config) {
  Values values(config);
  read_request(config, values);
  return values.failure();
}

}  // namespace

Command sim_command() {
  CommandSpec spec;
  spec.name = "sim";
  spec.summary = "Simulate whole clusters with faults, and check that nothing is lost";
  spec.text =
      "Runs the control plane of a job, as it is, on a simulated cluster: workers that join, leave, hang, stop and "
      "die, "
      "etcd, network and disk with their faults, drawn from a seed. Training is a stand-in of exact integers, so that "
      "a "
      "minibatch that is lost or done twice shows. While faults happen, every checkpoint must have the right bits, "
      "every minibatch must be consumed once, commits must form a chain, what is kept must be durable, and nothing of "
      "an "
      "older generation may count; after that, a new checkpoint must come soon.\n"
      "Prints how often each fault of the matrix was injected. Ends with exit code 70, the seed and what it violates "
      "if "
      "something does not hold.";
  spec.examples = {"everstep sim --seeds=2000", "everstep sim --seed=17 --trace", "everstep sim --seconds=600"};
  spec.options = {
      {.name = "seed", .value_name = "N", .default_text = "0", .help = "The first seed"},
      {.name = "seeds", .value_name = "COUNT", .help = "How many seeds to run: 100 unless told, 1 with --trace"},
      {.name = "seconds", .value_name = "S", .help = "Start no further seed after so many seconds"},
      {.name = "trace", .help = "Print one line per event"},
  };
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
