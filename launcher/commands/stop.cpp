#include <thread>

#include "launcher/commands/commands.h"
#include "launcher/status/ended_run.h"
#include "launcher/status/job_control.h"
#include "launcher/status/job_status.h"
#include "launcher/status/job_tool.h"

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};

Outcome refuse_idle_job(const JobTool& tool, const Config& config) {
  if (tool.view.find(tool.keys().finished()) != nullptr) {
    return blame_job(tool.address, config, invalid_argument("job '" + tool.address.job + "' is finished"));
  }
  if (!tool.view.below(tool.keys().members()).empty()) return {};
  return blame_job(tool.address, config,
                   invalid_argument("job '" + tool.address.job + "' has no workers: there is nothing to stop",
                                    "everstep job rm " + tool.address.job + " removes it"));
}

// What the run has printed in the end, as everstep train leaves it in its directory; else what its files tell.
std::string told_by_files(const std::string& directory, const std::string& secret, Clock::time_point limit) {
  while (RunLock::is_locked(directory) && Clock::now() < limit) std::this_thread::sleep_for(kLook);
  const auto run = read_ended_run(directory, secret);
  if (!run) return {};
  return run->word.summary.empty() ? ended_run_text(*run) : run->word.summary;
}

// What etcd tells of a job that nobody works for any more.
std::string told_by_etcd(const JobTool& tool, const Config& config) {
  const auto view = look_at_job(*tool.store, tool.keys(), tool.address.job);
  if (!view) return {};
  JobStatus status = read_opened_status(*view, tool.address.job, config.is_set("secret-file"));
  if (!status.head) return {};
  status.resume = resume_command(status, tool.address.etcd, config);
  return status_text(status);
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
  streams.out << what << " is asked to stop\n" << std::flush;
  if (!wait || wait->count() == 0) return {};
  const Clock::time_point limit = Clock::now() + *wait;
  const std::string members = tool.keys().members();
  JobWait until{*wait, what + " has not stopped",
                [&](const elastic::View& view) { return view.below(members).empty(); }};
  const std::string& directory = tool.address.directory;
  // A run that was killed meanwhile has taken its own etcd along.
  until.is_over = [&] { return !directory.empty() && !RunLock::is_locked(directory); };
  const Status stopped = tool.wait(std::move(until));
  if (!stopped) return stopped.error();
  streams.out << what << " has stopped\n"
              << (directory.empty() ? told_by_etcd(tool, config) : told_by_files(directory, tool.secret, limit));
  return {};
}

Outcome check(const Config& config) {
  Outcome failure;
  read_wait(config, failure);
  return failure ? failure : check_job_address(config);
}

}  // namespace

Command stop_command() {
  CommandSpec spec;
  spec.name = "stop";
  spec.summary = "Ask a whole job to save and stop";
  spec.text =
      "All workers finish the window, the state is saved as a checkpoint, and every worker leaves. Then, with --dir, "
      "prints what everstep train prints at its end, with the command that goes on from there; else what etcd tells of "
      "the job.\n"
      "Exit codes: 0 the job has stopped (or is asked to, with --wait=0), 64 there is no such job, or nobody works for "
      "it, 69 etcd does not answer, or the job has not stopped in time.";
  spec.examples = {"everstep stop --dir=runs/first", "everstep stop --dir=runs/first --wait=0",
                   "everstep stop --etcd=http://127.0.0.1:2379 --job=first"};
  OptionSpec wait = wait_option("until no worker is left");
  wait.default_text = wait.implicit_text;
  wait.help += "; 0: not at all";
  spec.options = job_address_options({secret_option(), wait});
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
