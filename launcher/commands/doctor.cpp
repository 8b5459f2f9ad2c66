#include "launcher/doctor/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "launcher/cli/files.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"

namespace everstep::launcher {
namespace {

struct DoctorRequest {
  doctor::Wishes wishes;
  bool is_temporary = true;  // nobody named a directory
  bool json = false;
};

std::string list_of_parts() {
  std::string text;
  for (const std::string& part : doctor::all_parts()) text.append(text.empty() ? "" : ", ").append(part);
  return text;
}

Outcome read_parts(const Config& config, doctor::Wishes& wishes) {
  const auto& all = doctor::all_parts();
  if (!config.is_set("only")) {
    wishes.parts = {all.begin(), all.end()};
    return {};
  }
  std::string text = *config.setting("only").text + ",";
  for (std::size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',')) {
    const std::string part = text.substr(0, comma);
    text.erase(0, comma + 1);
    if (std::find(all.begin(), all.end(), part) == all.end()) {
      return config.reject("only", "the doctor checks no '" + part + "'", "name some of " + list_of_parts());
    }
    wishes.parts.insert(part);
  }
  return {};
}

Outcome read_doctor_request(const Config& config, DoctorRequest& request) {
  Values values(config);
  request.json = values.flag("json");
  request.is_temporary = !config.is_set("output");
  if (!request.is_temporary) request.wishes.directory = std::filesystem::absolute(values.path("output"));
  if (values.failure()) return values.failure();
  if (auto failure = read_device_name(config, request.wishes.device)) return failure;
  return read_parts(config, request.wishes);
}

Outcome make_directory(const Config& config, DoctorRequest& request) {
  std::filesystem::path& directory = request.wishes.directory;
  if (request.is_temporary) {
    const auto made = make_temporary_directory("doctor");
    if (!made) return made.error();
    directory = *made;
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const bool is_empty = !error && std::filesystem::is_empty(directory, error);
  if (!error && is_empty) return {};
  return config.reject("output", error ? error.message() : "is not empty", "name a new directory");
}

// The tools that recovery needs are looked for where the system has them, also if nobody says so.
void set_usual_path() {
  constexpr int kKeepsTheOldOne = 0;
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", kKeepsTheOldOne);
}

Outcome run(const Config& config, Streams& streams) {
  DoctorRequest request;
  if (auto failure = read_doctor_request(config, request)) return failure;
  // From the first file to the last: whatever waits for something reads them.
  const SignalWatch signals;
  if (auto failure = make_directory(config, request)) return failure;
  set_usual_path();
  auto report = doctor::examine(request.wishes, streams);
  const bool is_kept = !request.is_temporary || (report && report->has_failed());
  std::error_code ignored;
  if (!is_kept) std::filesystem::remove_all(request.wishes.directory, ignored);
  if (!report) return report.error();
  if (is_kept) report->files = request.wishes.directory.string();
  streams.out << (request.json ? to_text(report_json(*report)) + "\n" : report_text(*report, streams.out_columns));
  if (!report->has_failed()) return {};
  return Failure({ErrorCode::kInternal, verdict(*report), "everstep doctor --json says all that is known about it"},
                 ExitCode::kDifferent);
}

Outcome check(const Config& config) {
  DoctorRequest request;
  return read_doctor_request(config, request);
}

}  // namespace

Command doctor_command() {
  CommandSpec spec;
  spec.name = "doctor";
  spec.summary = "Check a new machine before it is trusted with a job";
  spec.text =
      "Finds the devices, and checks on each of them: each operator of everstep against its CPU kernel (operators); a "
      "block of GPT and of BERT, forward and backward, in fp32 and bf16, against the CPU (blocks). Then: the ways for "
      "tensors between "
      "workers, with their speed (links); two equal runs with --reproducible, bit for bit (reproducible); the memory "
      "and the speed of training against what the planner predicts (memory, throughput); and a real job with an etcd "
      "of its own that loses a worker to SIGKILL, whose checkpoints are audited and replayed (recovery). On the CPU "
      "operators are compared with known bits, and blocks with differences of the loss.\n"
      "Logs a line for each check when it is done. Prints a table, why what has failed did, and a verdict. What cannot "
      "be checked here is told as such, with the reason. Takes about a minute on a CPU. Nothing else should run on "
      "the machine, or throughput may be too low.\n"
      "Exit codes: 0 all that was checked has passed, 1 something has failed, 64 the options make no sense, 75 "
      "interrupted. Files stay if something has failed, or if --output says where they go.";
  spec.examples = {"everstep doctor", "everstep doctor --device=cuda --json > doctor.json",
                   "everstep doctor --device=cuda:1 --only=operators,blocks"};
  spec.options = {
      {.name = "device",
       .value_name = "D",
       .default_text = "auto",
       .help = "What to check: cpu, cuda (all GPUs), cuda:N (that one), or auto (GPUs if there are any)"},
      {.name = "only",
       .value_name = "NAMES",
       .help = "Some of the checks, with commas between them: " + list_of_parts()},
      {.name = "output",
       .value_name = "DIR",
       .help = "Where logs and checkpoints go, and stay; if not set, a temporary directory",
       .command_line_only = true},
      {.name = "json", .help = "Print all that is known, to attach to an issue, instead of a table"},
  };
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
