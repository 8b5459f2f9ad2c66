#include "base/text.h"
#include "launcher/commands/commands.h"
#include "launcher/job/train_request.h"
#include "launcher/status/job_control.h"
#include "launcher/status/job_tool.h"

namespace everstep::launcher {
namespace {

Outcome read_workers(const Config& config, int& workers) {
  const std::string& text = config.positional.front();
  const auto number = parse_number<int>(text);
  if (!number || *number < 1 || *number > kMostLocalWorkers) {
    return Failure(invalid_argument("N=" + text + ": expected an integer" + range_text(1, kMostLocalWorkers),
                                    "everstep stop ends the job"),
                   ExitCode::kUsage);
  }
  workers = *number;
  return {};
}

Outcome run(const Config& config, Streams& streams) {
  int workers = 0;
  if (auto failure = read_workers(config, workers)) return failure;
  JobTool tool;
  if (auto failure = open_job_tool(config, tool)) return failure;
  if (tool.view.find(tool.keys().finished()) != nullptr) {
    return blame_job(tool.address, config, invalid_argument("job '" + tool.address.job + "' is finished"));
  }
  const Status asked = ask_for_workers(*tool.store, tool.keys(), workers);
  if (!asked) return asked.error();
  streams.out << "job " << tool.address.job << " is asked to have " << workers
              << (workers == 1 ? " local worker" : " local workers") << "; with those of other hosts it has "
              << tool.view.below(tool.keys().members()).size() << " now\n";
  return {};
}

Outcome check(const Config& config) {
  int workers = 0;
  Outcome failure = read_workers(config, workers);
  return failure ? failure : check_job_address(config);
}

}  // namespace

Command scale_command() {
  CommandSpec spec;
  spec.name = "scale";
  spec.summary = "Ask for another number of local workers";
  spec.text =
      "The everstep train that runs the job starts workers on its host, or asks its newest ones to leave, until it has "
      "N of them. Workers of other hosts (everstep worker) are not counted and stay. Without such an everstep train "
      "nothing happens.\n"
      "Exit codes: 0 the job is asked, 64 there is no such job, or it is finished, 69 etcd does not answer.";
  spec.examples = {"everstep scale 8 --dir=runs/first", "everstep scale 2 --etcd=http://127.0.0.1:2379 --job=first"};
  spec.options = job_address_options({secret_option()});
  spec.positional = {"N", "How many", 1, 1};
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
