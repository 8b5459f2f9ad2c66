#include "launcher/status/job_tool.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "elastic/sealed_store.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/job_setup.h"
#include "launcher/job/resume_command.h"

namespace everstep::launcher {

Outcome open_job_tool(const Config& config, JobTool& tool) {
  Outcome failure;
  tool.address = read_named_job(config, failure);
  tool.secret = read_secret(config, failure);
  if (!failure) failure = connect_to(tool.address, config, tool.store);
  if (failure) return failure;
  const auto found = find_job(*tool.store, tool.address.job, tool.secret);
  if (!found) return blame_job(tool.address, config, found.error());
  if (*found) tool.store = std::make_unique<elastic::SealedStore>(std::move(tool.store), (*found)->seal);
  auto view = look_at_job(*tool.store, tool.keys(), tool.address.job);
  if (!view) return blame_job(tool.address, config, view.error());
  tool.view = std::move(view).value();
  return {};
}

std::string resume_command(const JobStatus& status, const EtcdAddress& etcd, const Config& config) {
  const std::string checkpoints = checkpoints_of(status);
  if (checkpoints.empty() || !status.head) return {};
  std::string command = "everstep resume --from=" + shell_word(checkpoints) + " --etcd=" + joined_urls(etcd);
  for (const auto& [name, path] : certificate_settings(etcd)) command += " --" + name + "=" + shell_word(path);
  if (etcd.allow_plain_text) command += " --etcd-plain-text";
  if (config.is_set("secret-file")) command += " --secret-file=" + shell_word(*config.setting("secret-file").text);
  return command;
}

OptionSpec secret_option() {
  return {.name = "secret-file", .value_name = "FILE", .help = "The job's secret, if it has one: it proves who asks"};
}

Status JobTool::wait(JobWait until) const {
  if (!address.directory.empty()) {
    until.is_over = [file = job_address_file(address.directory), is_over = until.is_over] {
      return !std::filesystem::exists(file) || is_over();
    };
  }
  return await_job(*store, keys(), until);
}

OptionSpec wait_option(const std::string& what) {
  return {.name = "wait", .value_name = "S", .help = "Wait " + what + ", at most S seconds", .implicit_text = "600"};
}

std::optional<std::chrono::milliseconds> read_wait(const Config& config, Outcome& failure) {
  if (!config.is_set("wait")) return std::nullopt;
  Values values(config);
  const double seconds = values.number("wait", {.min = 0, .max = 1e6});
  if (!failure) failure = values.failure();
  return std::chrono::milliseconds(std::llround(1000 * seconds));
}

}  // namespace everstep::launcher
