#include "launcher/status/job_address.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "launcher/cli/files.h"
#include "launcher/job/job_setup.h"
#include "launcher/job/patient_store.h"
#include "launcher/job/store_connection.h"
#include "launcher/status/ended_run.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestFile = 64 << 10;

std::vector<OptionSpec> stored_options() {
  std::vector<OptionSpec> options = etcd_options(true);
  options.push_back({.name = "job", .value_name = "NAME", .help = "The job"});
  return options;
}

Error no_job_in(const std::string& directory) {
  switch (phase_of(directory)) {
    case RunPhase::kEnded:
      return invalid_argument("the run in " + directory + " has ended",
                              "everstep status --dir=" + directory + " tells how, and how to go on");
    case RunPhase::kStarting:
      return invalid_argument("the job of the run in " + directory + " is not there yet", "try again in a moment");
    case RunPhase::kFixed:
      return invalid_argument("the run in " + directory + " has no etcd (--etcd=none): there is nobody to ask",
                              "its metrics.jsonl and the workers' logs tell how it goes; Ctrl-C stops it");
    case RunPhase::kNone:
    case RunPhase::kRunning:
      break;
  }
  return invalid_argument("no job runs in " + directory + ": there is no " + job_address_file(directory),
                          "--dir names what everstep train has as --output");
}

// The configuration with the address that a run's directory tells.
Result<Config> config_from(const std::string& directory, Config config) {
  const std::string path = job_address_file(directory);
  auto text = read_file(path, kLargestFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return no_job_in(directory);
  if (!text) return text.error();
  const CommandSpec spec{.name = config.command, .options = stored_options()};
  const auto told = merge_config(spec, {.args = {}, .file = ConfigFile{path, *std::move(text)}});
  if (!told) return told.error();
  config.file_path = path;
  for (Setting& setting : config.settings) {
    const auto found = std::find_if(told->settings.begin(), told->settings.end(),
                                    [&](const Setting& one) { return one.name == setting.name; });
    if (found != told->settings.end()) setting = *found;
  }
  return config;
}

Outcome refuse_both(const Config& config) {
  for (const OptionSpec& option : stored_options()) {
    if (config.setting(option.name).source != Source::kFlag) continue;
    return config.reject(option.name, "does not go with --dir, which says the same", "leave one of the two out");
  }
  return {};
}

JobAddress read_options(const Config& config, Outcome& failure) {
  Values values(config);
  JobAddress address;
  if (!config.is_set("etcd")) {
    failure = Failure(invalid_argument("where is the job?",
                                       "--etcd=URL names its etcd, or --dir=RUN the directory of "
                                       "the run that started it"),
                      ExitCode::kUsage);
    return address;
  }
  address.etcd = read_etcd_servers(config, values, failure);
  if (config.is_set("job")) address.job = read_job_name(config, values, failure);
  return address;
}

}  // namespace

std::vector<OptionSpec> job_address_options(std::vector<OptionSpec> others) {
  std::vector<OptionSpec> options = stored_options();
  for (OptionSpec& option : options) option.required = false;
  options.insert(
      options.begin(),
      {.name = "dir", .value_name = "RUN", .help = "The directory of a run of this host, instead of --etcd and --job"});
  for (OptionSpec& option : others) options.push_back(std::move(option));
  return options;
}

Outcome check_job_address(const Config& config) {
  Outcome failure;
  if (!config.is_set("dir")) {
    read_options(config, failure);
    return failure;
  }
  Values values(config);
  values.path("dir");
  return values.failure() ? values.failure() : refuse_both(config);
}

JobAddress read_job_address(const Config& config, Outcome& failure) {
  if (!config.is_set("dir")) return read_options(config, failure);
  failure = check_job_address(config);
  if (failure) return {};
  const std::string directory = *config.setting("dir").text;
  const auto located = config_from(directory, config);
  if (!located) {
    failure = config.blame("dir", located.error());
    return {};
  }
  JobAddress address = read_options(*located, failure);
  address.directory = directory;
  return address;
}

JobAddress read_named_job(const Config& config, Outcome& failure) {
  JobAddress address = read_job_address(config, failure);
  if (!failure && address.job.empty()) {
    failure =
        Failure(invalid_argument("--job is missing", "everstep job ls lists the jobs of an etcd"), ExitCode::kUsage);
  }
  return address;
}

std::string job_address_file(const std::string& run_directory) { return run_directory + "/job.conf"; }

Status write_job_address(const std::string& run_directory, const Config& run) {
  std::string text;
  for (const OptionSpec& option : stored_options()) {
    if (!run.is_set(option.name)) continue;
    text += option.name + " = " + lasting_text(option, *run.setting(option.name).text) + "\n";
  }
  return write_file(job_address_file(run_directory), text);
}

void remove_job_address(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(job_address_file(run_directory), ignored);
}

Outcome connect_to(const JobAddress& address, const Config& config, std::unique_ptr<elastic::KvStore>& store) {
  auto connected = connect_store(address.etcd);
  if (connected) {
    store = std::move(connected).value();
    return {};
  }
  Error error = connected.error();
  if (error.code == ErrorCode::kInvalidArgument) return config.blame(address.directory.empty() ? "etcd" : "dir", error);
  if (!address.directory.empty() && error.hint.empty()) error.hint = "the run in " + address.directory + " may be over";
  return error;
}

Failure blame_job(const JobAddress& address, const Config& config, const Error& error) {
  return config.blame(address.directory.empty() ? "job" : "dir", error);
}

Result<elastic::View> look_at_job(elastic::KvStore& store, const elastic::Keys& keys, const std::string& job) {
  auto reply = transact_patiently(store, {{}, {elastic::list(keys.live())}, {}});
  if (!reply) return reply.error();
  elastic::View view;
  view.replace(std::move(reply->reads.at(0)), reply->revision, std::move(reply->forged));
  if (view.find(keys.spec()) == nullptr) return no_such_job(store, job);
  return view;
}

}  // namespace everstep::launcher
