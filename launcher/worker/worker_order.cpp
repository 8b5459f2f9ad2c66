#include "launcher/worker/worker_order.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "launcher/cli/host.h"
#include "launcher/job/data_digest.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/resume_rules.h"
#include "launcher/worker/worker_wire.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kSupervised = "supervised";
constexpr std::string_view kDevice = "device";
constexpr std::string_view kTransport = "transport";

CommandSpec program_spec() {
  CommandSpec spec;
  spec.name = "worker";
  spec.options = worker_order_options();
  spec.options.push_back({.name = std::string(kSupervised), .help = "Everstep train waits at the control socket"});
  return spec;
}

// It is shown to people and names a log file.
bool is_worker_name(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= kLongest && name.front() != '.' && name.front() != '-' &&
         name.front() != '_' && std::all_of(name.begin(), name.end(), fits);
}

Result<std::string> own_data_digest(const TrainRequest& request) {
  if (!request.data) return std::string();
  return data_digest(request.data->path, *storage::make_openssl_hashing());
}

// The settings of the job with what this host has otherwise, and one that read_train_request cannot do without.
std::vector<Setting> host_settings(const Config& order) {
  std::vector<Setting> settings = order.settings;
  // See device_for() and transport_for().
  std::erase_if(settings, [](const Setting& one) { return one.name == kDevice || one.name == kTransport; });
  settings.push_back({"workers", "1", Source::kDefault, 0});
  return settings;
}

// All workers of a job compute on one kind of device: bits of another one would differ.
Result<DeviceName> device_for(const WorkerOrder& order, const TrainRequest& request) {
  if (!order.device) return DeviceName{request.device};
  if (order.device->kind == request.device) return *order.device;
  return invalid_argument("job '" + order.job + "' runs with other settings: " +
                              setting_difference(std::string(kDevice), request.device, order.device->kind),
                          "all workers of a job compute on one kind of device");
}

// Workers of a job either look for NCCL together or not at all; one that is told not to have it is reached over the
// host's wire, if the job does not insist.
Result<std::string> transport_for(const WorkerOrder& order, const TrainRequest& request) {
  if (!order.transport || *order.transport == request.transport || request.transport == kAnyTransport) {
    return order.transport.value_or(request.transport);
  }
  return invalid_argument("job '" + order.job + "' runs with other settings: " +
                              setting_difference(std::string(kTransport), request.transport, *order.transport),
                          "leave --transport out");
}

}  // namespace

std::vector<OptionSpec> worker_order_options() {
  std::vector<OptionSpec> options = etcd_options(true);
  options.push_back({.name = "job", .value_name = "NAME", .help = "The job to work for", .required = true});
  options.push_back({.name = "name", .value_name = "NAME", .help = "What to call this worker; if not set, its host"});
  options.push_back({.name = "host-name",
                     .value_name = "NAME",
                     .help = "The host as the job knows it: what fails together; if not set, its own name"});
  options.push_back({.name = "secret-file", .value_name = "FILE", .help = "The job's secret, if it has one"});
  options.push_back({.name = "data", .value_name = "PATH", .help = "Where this host has the job's data"});
  options.push_back(
      {.name = "checkpoint-dir", .value_name = "DIR", .help = "Where this host has the job's checkpoints"});
  for (OptionSpec& option : host_options()) options.push_back(std::move(option));
  options.push_back({.name = std::string(kDevice),
                     .value_name = "D",
                     .help = "What to compute on: cuda:N for a certain GPU, whoever has it; if not set, a device of "
                             "the job's kind that no other worker of this host has"});
  options.push_back({.name = std::string(kTransport),
                     .value_name = "T",
                     .help = "How tensors travel between GPUs: nccl, host or auto; if not set, as the job says"});
  options.push_back({.name = "slowdown",
                     .value_name = "X",
                     .default_text = "1",
                     .help = "Take X times as long for each forward and backward, to rehearse a slow worker"});
  options.push_back({.name = "output",
                     .value_name = "DIR",
                     .help = "Where the log of this worker goes, to a file; if not set, to standard error",
                     .command_line_only = true});
  return options;
}

WorkerOrder read_worker_order(const Config& config, Outcome& failure) {
  Values values(config);
  WorkerOrder order;
  order.config = config;
  order.etcd = read_etcd_servers(config, values, failure);
  order.job = read_job_name(config, values, failure);
  order.host = read_host_options(config, values, failure);
  if (config.is_set("name")) order.name = values.path("name");
  if (config.is_set("host-name")) order.host_name = values.path("host-name");
  if (config.is_set("output")) order.output = values.path("output");
  if (config.is_set(kDevice)) {
    auto device = parse_device(*config.setting(kDevice).text);
    if (!device && !failure) failure = config.reject(kDevice, device.error().message, device.error().hint);
    if (device && device->kind != kAnyDevice) order.device = *device;
  }
  if (!failure && config.is_set(kTransport)) failure = read_transport(config, order.transport.emplace());
  order.slowdown = values.number("slowdown", {.min = 1, .max = 1000});
  if (!failure) failure = values.failure();
  for (const auto& [option, what] : {std::pair("name", "worker"), std::pair("host-name", "host")}) {
    if (failure || !config.is_set(option) || is_worker_name(*config.setting(option).text)) continue;
    failure = config.reject(option, "is no name of a " + std::string(what),
                            "use 1 to 63 letters, digits, '-', '_' and '.', the first one a letter or a digit");
  }
  order.secret = read_secret(config, failure);
  return order;
}

Result<WorkerOrder> read_worker_order(const std::vector<std::string>& args) {
  const CommandSpec spec = program_spec();
  const auto parsed = parse_args(spec, args);
  if (!parsed) return parsed.error();
  const auto config = merge_config(spec, {.args = *parsed});
  if (!config) return config.error();
  Outcome failure;
  WorkerOrder order = read_worker_order(*config, failure);
  if (failure) return failure->error;
  order.supervised = Values(*config).flag(kSupervised);
  return order;
}

std::string host_of(const WorkerOrder& order) { return order.host_name.empty() ? host_name() : order.host_name; }

Reach reach_of(const WorkerOrder& order) {
  return {order.etcd.urls, host_of(order), expected_address(order.host.wire, !order.secret.empty()), is_own_socket};
}

std::vector<std::string> worker_order_arguments(const Config& config) {
  std::vector<std::string> args;
  for (const OptionSpec& option : worker_order_options()) {
    const auto found = std::find_if(config.settings.begin(), config.settings.end(),
                                    [&](const Setting& one) { return one.name == option.name; });
    if (found != config.settings.end() && found->text) args.push_back("--" + option.name + "=" + *found->text);
  }
  return args;
}

Result<JoinedJob> read_job(elastic::KvStore& store, const WorkerOrder& order) {
  auto found = find_job(store, order.job, order.secret);
  if (!found) return found.error();
  if (!*found) return no_such_job(store, order.job);
  JoinedJob job;
  job.found = **std::move(found);
  // A spec of another build may have settings that this one does not know: that is not what is wrong then.
  elastic::JobSpec mine = job.found.spec;
  mine.build = kVersion;
  EVERSTEP_TRY(check_same_job(order.job, job.found, mine));
  auto config = config_of(job.found.spec, host_settings(order.config));
  if (!config) return config.error();
  job.config = std::move(config).value();
  Outcome failure;
  job.request = read_train_request(job.config, host_memory_bytes(), failure);
  Values values(job.config);
  job.membership = read_membership_options(values);
  if (!failure) failure = values.failure();
  if (failure) return failure->error;
  auto device = device_for(order, job.request);
  if (!device) return device.error();
  job.device = std::move(device).value();
  auto transport = transport_for(order, job.request);
  if (!transport) return transport.error();
  job.transport = std::move(transport).value();
  auto digest = own_data_digest(job.request);
  if (!digest) return digest.error();
  mine.data_hash = std::move(digest).value();
  EVERSTEP_TRY(check_same_job(order.job, job.found, mine));
  return job;
}

}  // namespace everstep::launcher
