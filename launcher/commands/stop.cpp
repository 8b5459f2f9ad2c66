#include "launcher/commands/commands.h"
#include "launcher/commands/job_tool.h"
#include "launcher/elastic/job_control.h"

namespace everstep::launcher {
namespace {

Outcome refuse_idle_job(const JobTool& tool, const Config& config) {
  if (tool.view.find(tool.keys().finished()) != nullptr) {
    return blame_job(tool.address, config, invalid_argument("job '" + tool.address.job + "' is finished"));
  }
  if (!tool.view.below(tool.keys().members()).empty()) return {};
  return blame_job(tool.address, config,
                   invalid_argument("job '" + tool.address.job + "' has no workers: there is nothing to stop",
                                    "everstep job rm " + tool.address.job + " removes it"));
}

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  const auto wait = read_wait(config, failure);
  JobTool tool;
  if (!failure) failure = open_job_tool(config, tool);
  if (!failure) failure = refuse_idle_job(tool, config);
  if (failure) return failure;
  const Status asked = ask_to_stop(*tool.store, tool.keys(), "everstep stop");
  if (!asked) return asked.error();
  const std::string what = "job " + tool.address.job;
  streams.out << what << " is asked to stop\n";
  if (!wait) return {};
  streams.out.flush();
  const std::string members = tool.keys().members();
  const Status stopped = tool.wait(
      {*wait, what + " has not stopped", [&](const elastic::View& view) { return view.below(members).empty(); }});
  if (!stopped) return stopped.error();
  streams.out << what << " has stopped\n";
  return {};
}

}  // namespace

Command stop_command() {
  CommandSpec spec;
  spec.name = "stop";
  spec.summary = "Ask a whole job to save and stop";
  spec.text =
      "All workers finish the window, the state is saved as a checkpoint, and every worker leaves. everstep resume, or "
      "everstep train --resume, goes on from there.\n"
      "Returns as soon as the job is asked; with --wait, when no worker is left.";
  spec.examples = {"everstep stop --dir=runs/first --wait", "everstep stop --etcd=http://127.0.0.1:2379 --job=first"};
  spec.options = job_address_options({secret_option(), wait_option("until no worker is left")});
  return {spec, run};
}

}  // namespace everstep::launcher
