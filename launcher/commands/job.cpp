#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/job_setup.h"
#include "launcher/status/job_address.h"
#include "launcher/status/job_list.h"
#include "launcher/status/job_tool.h"
#include "storage/manifest.h"

namespace everstep::launcher {
namespace {

Outcome connect(const Config& config, std::unique_ptr<elastic::KvStore>& store) {
  Values values(config);
  Outcome failure;
  JobAddress address;
  address.etcd = read_etcd_servers(config, values, failure);
  return failure ? failure : connect_to(address, config, store);
}

Outcome run_list(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  if (values.failure()) return values.failure();
  std::unique_ptr<elastic::KvStore> store;
  if (auto failure = connect(config, store)) return failure;
  const auto jobs = list_jobs(*store, {});
  if (!jobs) return jobs.error();
  streams.out << (json ? to_text(job_list_json(*jobs)) + "\n" : job_list_text(*jobs, streams.out_columns));
  return {};
}

std::string removed_text(const std::string& job, const RemovedJob& removed) {
  std::string text = "removed job " + job + ", which was " + (removed.was_finished ? "finished" : "not finished") +
                     ": " + std::to_string(removed.keys) + (removed.keys == 1 ? " key" : " keys");
  if (removed.members > 0) {
    text += ", among them " + std::to_string(removed.members) + (removed.members == 1 ? " worker" : " workers") +
            " that lived";
  }
  return text + "; its checkpoints stay\n";
}

Outcome run_remove(const Config& config, Streams& streams) {
  Values values(config);
  const bool force = values.flag("force");
  const std::string& job = config.positional.front();
  if (values.failure()) return values.failure();
  if (const Status fits = storage::check_job_name(job); !fits) return Failure(fits.error(), ExitCode::kUsage);
  Outcome failure;
  const std::string secret = read_secret(config, failure);
  std::unique_ptr<elastic::KvStore> store;
  if (!failure) failure = connect(config, store);
  if (failure) return failure;
  const auto removed = remove_job(*store, job, secret, force);
  if (removed) {
    streams.out << removed_text(job, *removed);
    return {};
  }
  const ErrorCode code = removed.error().code;
  const bool is_wrong = code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument;
  return is_wrong ? Failure(removed.error(), ExitCode::kUsage) : Failure(removed.error());
}

// The address without a job: the argument names it, or all are meant.
std::vector<OptionSpec> server_options(const std::vector<OptionSpec>& others) {
  std::vector<OptionSpec> options = etcd_options(true);
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

Command list_part() {
  CommandSpec spec;
  spec.name = "job ls";
  spec.summary = "List the jobs of an etcd";
  spec.text = "Prints a row per job. The step is that of the newest checkpoint where nobody trains.";
  spec.examples = {"everstep job ls --etcd=http://127.0.0.1:2379",
                   "everstep job ls --etcd=https://a:2379,https://b:2379 --etcd-ca=ca.pem --json"};
  spec.options = server_options({{.name = "json", .help = "Print JSON"}});
  return {spec, run_list};
}

Command remove_part() {
  CommandSpec spec;
  spec.name = "job rm";
  spec.summary = "Remove a job's keys from an etcd";
  spec.text =
      "For a job that is finished, or that nobody is to go on with: its name is free again. Checkpoints are files and "
      "stay. A job with workers that live is refused; with --force they lose it and end. A job with a secret is "
      "removed by "
      "whoever knows it.";
  spec.examples = {"everstep job rm first --etcd=http://127.0.0.1:2379"};
  spec.options = server_options({secret_option(), {.name = "force", .help = "Also if workers live"}});
  spec.positional = {"NAME", "The job", 1, 1};
  return {spec, run_remove};
}

}  // namespace

Command job_command() {
  Command command;
  command.spec.name = "job";
  command.spec.summary = "List and remove the jobs of an etcd";
  command.spec.text = "A job is what etcd keeps about a training that workers share, under a name of its own.";
  command.spec.examples = {"everstep job ls --etcd=http://127.0.0.1:2379",
                           "everstep job rm first --etcd=http://127.0.0.1:2379"};
  command.parts = {list_part(), remove_part()};
  return command;
}

}  // namespace everstep::launcher
