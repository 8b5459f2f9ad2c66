#pragma once

#include <memory>
#include <string>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/view.h"
#include "launcher/job/elastic_options.h"

namespace everstep::launcher {

// Which job a command is about, and the etcd that keeps it together.
struct JobAddress {
  EtcdAddress etcd;
  std::string job;        // empty: none is named
  std::string directory;  // of the run that said so; empty: the options did

  bool operator==(const JobAddress&) const = default;
};

// --dir, --etcd and what goes with it, --job, and others of the command's. --dir=RUN names the directory of a run of
// `everstep train`, and stands for the rest.
std::vector<OptionSpec> job_address_options(std::vector<OptionSpec> others = {});

// Refuses what says the same twice, or nothing.
Outcome check_job_address(const Config& config);
JobAddress read_job_address(const Config& config, Outcome& failure);
// The same for a command that needs a job.
JobAddress read_named_job(const Config& config, Outcome& failure);

// How the directory of a run tells its address: a file under the names of the options, so that --config reads it too.
std::string job_address_file(const std::string& run_directory);
// `run` is the configuration of `everstep train` with --etcd as URLs.
Status write_job_address(const std::string& run_directory, const Config& run);
void remove_job_address(const std::string& run_directory);

// Connects. What is wrong with --etcd is the user's mistake, a server that does not answer is not.
Outcome connect_to(const JobAddress& address, const Config& config, std::unique_ptr<elastic::KvStore>& store);

// For what is wrong with the job that is named: who named it is to blame.
Failure blame_job(const JobAddress& address, const Config& config, const Error& error);

// All that is under the job's live keys. kNotFound: there is no such job.
Result<elastic::View> look_at_job(elastic::KvStore& store, const elastic::Keys& keys, const std::string& job);

}  // namespace everstep::launcher
