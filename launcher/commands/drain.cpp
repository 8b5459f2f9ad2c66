#include "launcher/cli/printable.h"
#include "launcher/commands/commands.h"
#include "launcher/status/job_control.h"
#include "launcher/status/job_status.h"
#include "launcher/status/job_tool.h"

namespace everstep::launcher {
namespace {

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  const auto wait = read_wait(config, failure);
  JobTool tool;
  if (!failure) failure = open_job_tool(config, tool);
  if (failure) return failure;
  const auto member = choose_member(tool.view, tool.keys(), config.positional.front());
  if (!member) return Failure(member.error(), ExitCode::kUsage);
  const std::string who = printable(member->name) + " (" + short_id(member->id) + ")";
  const Status asked = ask_to_leave(*tool.store, tool.keys(), member->id, "everstep drain");
  if (!asked && asked.error().code != ErrorCode::kNotFound) return asked.error();
  streams.out << who << (asked ? " is asked to leave\n" : " is gone already\n");
  if (!asked || !wait) return {};
  streams.out.flush();
  const std::string key = tool.keys().member(member->id);
  const Status left =
      tool.wait({*wait, who + " has not left", [&](const elastic::View& view) { return view.find(key) == nullptr; }});
  if (!left) return left.error();
  streams.out << who << " has left\n";
  return {};
}

Outcome check(const Config& config) {
  Outcome failure;
  read_wait(config, failure);
  return failure ? failure : check_job_address(config);
}

}  // namespace

Command drain_command() {
  CommandSpec spec;
  spec.name = "drain";
  spec.summary = "Ask one worker of a job to leave";
  spec.text =
      "The worker finishes what is in flight, hands its state over to the others and exits with code 75; they go on "
      "with a new plan, and no minibatch is done twice. If it is the last one, the job is saved and stops.\n"
      "Returns as soon as the worker is asked; with --wait, when it has left.\n"
      "Exit codes: 0 it is asked, or has left, 64 there is no such job or worker, 69 etcd does not answer, or the "
      "worker has not left in time.";
  spec.examples = {"everstep drain w3 --dir=runs/first",
                   "everstep drain 1f2e3d4c --etcd=http://127.0.0.1:2379 --job=first --wait=60"};
  spec.options = job_address_options({secret_option(), wait_option("until the worker has left")});
  spec.positional = {"WORKER", "Its name, or the first digits of its id, as everstep status shows them", 1, 1};
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
