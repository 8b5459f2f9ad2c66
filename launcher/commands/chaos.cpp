#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"
#include "launcher/rehearse/chaos/far_host.h"
#include "launcher/rehearse/chaos/memory_limit.h"
#include "launcher/rehearse/chaos/run.h"
#include "launcher/rehearse/chaos/schedule.h"
#include "launcher/rehearse/chaos/slow_disk.h"
#include "launcher/rehearse/chaos/small_disk.h"

namespace everstep::launcher {
namespace {

using chaos::Schedule;

constexpr std::size_t kLargestSchedule = std::size_t{1} << 20;
constexpr std::int64_t kMostSeeds = 1'000'000;

struct Request {
  std::vector<Schedule> schedules;
  std::string device;
  std::string transport;
  std::filesystem::path output;
  bool is_temporary = true;  // nobody named the output
  bool prints = false;
  bool keeps = false;
};

Outcome read_schedule(const Config& config, const std::string& path, Request& request) {
  const auto text = read_file(path, kLargestSchedule);
  if (!text) return config.blame("schedule", text.error());
  auto schedule = chaos::parse_schedule(*text);
  if (!schedule) return config.blame("schedule", schedule.error());
  request.schedules.push_back(std::move(*schedule));
  return {};
}

// The tools that make faults are looked for where the system has them, also if nobody says so.
void set_path() {
  constexpr int kKeepsTheOldOne = 0;
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", kKeepsTheOldOne);
}

void draw_schedules(const Config& config, Values& values, Request& request, Streams& streams) {
  const std::int64_t first = values.integer("seed", {.min = 0});
  const std::int64_t count = values.integer("count", {.min = 1, .max = kMostSeeds});
  chaos::ScheduleOptions options;
  options.workers = static_cast<int>(values.integer("workers", {.min = chaos::kFewestWorkers, .max = 8}));
  if (config.is_set("etcd-servers")) options.etcd_servers = values.choice("etcd-servers", {"1", "3"}) == 0 ? 1 : 3;
  if (values.failure()) return;
  options.can_fill_disk = chaos::SmallDisk::is_possible();
  options.can_slow_disk = chaos::SlowDisk::is_possible();
  options.can_cut_network = chaos::FarHost::is_possible();
  options.can_limit_memory = chaos::MemoryLimit::is_possible();
  if (!options.can_limit_memory) streams.log << "no lack of memory: it needs root and cgroups\n";
  if (!options.can_cut_network) streams.log << "no cut networks: they need root, ip, tc, unshare and nsenter\n";
  if (!options.can_fill_disk) streams.log << "no full disks: they need root\n";
  if (!options.can_slow_disk) streams.log << "no slow disks: they need strace\n";
  for (std::int64_t seed = first; seed < first + count; ++seed) {
    request.schedules.push_back(make_schedule(static_cast<std::uint64_t>(seed), options));
  }
}

Outcome read_request(const Config& config, Request& request, Streams& streams) {
  Values values(config);
  request.prints = values.flag("print");
  request.keeps = values.flag("keep");
  request.device = values.text("device");
  request.transport = values.text("transport");
  request.is_temporary = !config.is_set("output");
  request.output = std::filesystem::temp_directory_path() / ("everstep-chaos-" + std::to_string(::getpid()));
  if (!request.is_temporary) request.output = std::filesystem::absolute(values.path("output"));
  if (values.failure()) return values.failure();
  if (config.is_set("schedule")) return read_schedule(config, values.path("schedule"), request);
  draw_schedules(config, values, request, streams);
  return values.failure();
}

// "seed 17: amdp, 4 workers, 3 etcd servers, 6 faults in 8.4 s"
std::string title(const Schedule& schedule) {
  return "seed " + std::to_string(schedule.seed) + ": " + std::string(to_string(schedule.job)) +
         (schedule.deep ? " over all workers, " : ", ") + counted(schedule.workers, "worker", "workers") + ", " +
         counted(schedule.etcd_servers, "etcd server", "etcd servers") + ", " +
         counted(std::ssize(schedule.faults), "fault", "faults") + " in " + chaos::seconds_text(schedule.end()) + " s";
}

std::string broken_promises(const chaos::RunReport& report) {
  std::string names;
  for (const chaos::Finding& finding : report.findings) {
    if (!finding.holds) names.append(names.empty() ? "" : ", ").append(to_string(finding.promise));
  }
  return names;
}

struct Tally {
  std::int64_t runs = 0;
  std::int64_t commits = 0;
  std::int64_t updates = 0;
  std::int64_t generations = 0;
  double seconds = 0;
  double longest = 0;
  std::vector<std::string> broken;  // "seed 17 (BITS)"

  void add(const Schedule& schedule, const chaos::RunReport& report) {
    ++runs;
    commits += report.commits;
    updates += report.updates;
    generations += report.generations;
    seconds += report.seconds;
    longest = std::max(longest, report.seconds);
    if (!report.holds())
      broken.push_back("seed " + std::to_string(schedule.seed) + " (" + broken_promises(report) + ")");
  }

  std::string text() const {
    return counted(runs, "schedule", "schedules") + " in " + fixed_text(seconds, 1) + " s, the longest " +
           fixed_text(longest, 1) + " s: " + counted(updates, "update", "updates") + ", " +
           counted(commits, "commit", "commits") + ", " + counted(generations, "generation", "generations");
  }
};

Outcome run_one(const Schedule& schedule, const Request& request, Tally& tally, Streams& streams) {
  const std::filesystem::path directory = request.output / ("seed-" + std::to_string(schedule.seed));
  std::error_code error;
  if (!std::filesystem::create_directories(directory, error)) {
    return Failure(invalid_argument("cannot make the directory " + directory.string() + ": " +
                                        (error ? error.message() : "it is there already"),
                                    "name another one with --output"),
                   ExitCode::kUsage);
  }
  streams.out << title(schedule) << std::endl;
  const auto report = run_schedule(schedule, {request.device, request.transport}, directory, streams);
  const bool is_good = report && report->holds();
  const bool is_cancelled = !report && report.error().code == ErrorCode::kCancelled;
  if (!request.keeps && (is_good || (is_cancelled && request.is_temporary))) {
    std::filesystem::remove_all(directory, error);
    if (request.is_temporary) std::filesystem::remove(request.output, error);
  }
  if (!report) return report.error();
  tally.add(schedule, *report);
  if (is_good) {
    streams.out << "seed " << schedule.seed << ": all promises hold, " << fixed_text(report->seconds, 1) << " s"
                << std::endl;
  } else {
    streams.out << "seed " << schedule.seed << ": broken: " << broken_promises(*report) << "; all about it is in "
                << directory.string() << "\nagain: everstep chaos --schedule=" << (directory / "schedule.txt").string()
                << std::endl;
  }
  return {};
}

Outcome run(const Config& config, Streams& streams) {
  set_path();
  Request request;
  if (auto failure = read_request(config, request, streams)) return failure;
  if (request.prints) {
    for (const Schedule& schedule : request.schedules) streams.out << to_text(schedule);
    return {};
  }
  Tally tally;
  for (const Schedule& schedule : request.schedules) {
    if (auto failure = run_one(schedule, request, tally, streams)) return failure;
  }
  if (request.schedules.size() > 1) streams.out << tally.text() << "\n";
  if (tally.broken.empty()) return {};
  std::string broken;
  for (const std::string& one : tally.broken) broken.append(broken.empty() ? "" : ", ").append(one);
  return Error{ErrorCode::kInternal, "promises are broken: " + broken, "everstep chaos --seed=N repeats one of them"};
}

std::string text_of_faults() {
  std::string text;
  for (const chaos::FaultForm& form : chaos::all_forms()) {
    std::string line(form.name);
    if (form.picks) line += " pick=N";
    if (!form.number.empty()) line.append(" ").append(form.number).append("=N");
    if (form.lasts) line += " for=S";
    text.append("\n").append(line).append(": ").append(form.help);
  }
  return text;
}

}  // namespace

Command chaos_command() {
  CommandSpec spec;
  spec.name = "chaos";
  spec.summary = "Rehearse: a real job on this machine, with faults";
  spec.text =
      "Starts etcd servers, everstep train and workers on this machine, trains a tiny GPT, and makes faults happen "
      "that "
      "are drawn from a seed or read from a file. Then it finds out which promises hold: new checkpoints come soon "
      "(LIVE), all processes end in time with documented exit codes (NOHANG), nothing of an old generation was "
      "committed (FENCE), each minibatch counts once (ONCE), no commit is lost (CHAIN), all checkpoints can be read "
      "(RESTORE), one process that trains the same again has the same bits (BITS), and memory, threads, descriptors, "
      "files and keys are what they should be (BOUND).\n"
      "Prints a line per fault and per promise. Ends with exit code 70 and the schedule if a promise is broken; the "
      "files of that run stay. Ctrl-C ends everything, with exit code 75.\n"
      "A schedule is a text of lines, as --print shows it: seconds after the first checkpoint, and a fault:" +
      text_of_faults();
  spec.examples = {"everstep chaos --seed=17", "everstep chaos --count=50",
                   "everstep chaos --seed=17 --print > mine.txt",
                   "everstep chaos --schedule=mine.txt --keep --output=rehearsal",
                   "everstep chaos --count=50 --device=cuda --workers=2"};
  spec.options = {
      {.name = "seed", .value_name = "N", .default_text = "0", .help = "What to draw the faults from"},
      {.name = "count", .value_name = "K", .default_text = "1", .help = "So many seeds, one after the other"},
      {.name = "workers", .value_name = "N", .default_text = "4", .help = "Workers that the job starts with, 2 to 8"},
      {.name = "device",
       .value_name = "D",
       .default_text = "cpu",
       .help = "As for everstep train; workers that join later take the first of their kind"},
      {.name = "transport", .value_name = "T", .default_text = "auto", .help = "As for everstep train"},
      {.name = "etcd-servers", .value_name = "N", .help = "1 or 3; if not set, drawn from the seed"},
      {.name = "output",
       .value_name = "DIR",
       .help = "Where logs, data and checkpoints go; if not set, a temporary directory",
       .command_line_only = true},
      {.name = "schedule",
       .value_name = "FILE",
       .help = "The faults, instead of drawing them",
       .command_line_only = true},
      {.name = "print", .help = "Show the schedule and do nothing"},
      {.name = "keep", .help = "Keep the files of runs in which all promises hold, too"},
  };
  return {spec, run};
}

}  // namespace everstep::launcher
