#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "elastic/keys.h"
#include "launcher/cli/command.h"
#include "launcher/status/job_address.h"
#include "launcher/status/job_control.h"
#include "launcher/status/job_status.h"

namespace everstep::launcher {

// A running job that a command asks something of.
struct JobTool {
  JobAddress address;
  std::string secret;
  std::unique_ptr<elastic::KvStore> store;  // seals what is asked
  elastic::View view;                       // when it was opened

  elastic::Keys keys() const { return elastic::Keys(address.job); }
  // As await_job; a job whose run has ended with its etcd is over.
  Status wait(JobWait until) const;
};

// Reads --dir, --etcd, --job and --secret-file, connects, and looks at the job. A job that is not there is the user's
// mistake, and so is one whose secret was not given: its workers would not listen.
Outcome open_job_tool(const Config& config, JobTool& tool);

// The command that goes on with a job that nobody works for, in the etcd where it is: with what the configuration of a
// command about it says of that etcd and of the secret. Empty: it has no checkpoint.
std::string resume_command(const JobStatus& status, const EtcdAddress& etcd, const Config& config);

// --secret-file, which every command has that wants something of a job.
OptionSpec secret_option();

// --wait[=SECONDS]; `what` it waits for: "until the worker has left".
OptionSpec wait_option(const std::string& what);
// Nothing: not to wait.
std::optional<std::chrono::milliseconds> read_wait(const Config& config, Outcome& failure);

}  // namespace everstep::launcher
