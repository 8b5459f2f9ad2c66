#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elastic/kv_store.h"
#include "elastic/record_seal.h"
#include "elastic/records.h"
#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/job/train_request.h"

namespace everstep::launcher {

// The job as its spec describes it: the settings in force but for those of a host, "data-digest" and, so that no
// generation is numbered as one that left traces in the checkpoint directory, "first-generation". "first-workers" says
// how many are started with it, "first-sequence" which checkpoint was the newest in the directory. Paths are absolute.
elastic::JobSpec spec_of(const Config& config, std::uint64_t lineage, Generation first_generation,
                         const std::string& data_digest, std::int64_t first_sequence = 0);

// What is there under a job's name.
struct FoundJob {
  elastic::JobSpec spec;
  std::string text;  // as it stands in the store: what every worker compares with
  bool finished = false;
  elastic::RecordSeal seal{};  // of its records

  Generation first_generation() const;
  int first_workers() const;            // that many were started with the job
  std::int64_t first_sequence() const;  // 0: the job's directory was empty
};

// Nothing: there is no such job. kInvalidArgument: it has another secret, or one has a secret and the other has none.
Result<std::optional<FoundJob>> find_job(elastic::KvStore& store, const std::string& job, const std::string& secret);

// Refuses to take part in a job that is finished, of another build of the program, on other data or under other
// settings; names all that differ with both values. Lineage and paths may differ.
Status check_same_job(const std::string& job, const FoundJob& found, const elastic::JobSpec& mine);

// Writes the spec, sealed with the secret if there is one, and `head` (where the job starts; nothing: at the beginning)
// at one instant. Returns the seal of the job's records. kInvalidArgument: the job is there already.
Result<elastic::RecordSeal> create_job(elastic::KvStore& store, const std::string& job, elastic::JobSpec spec,
                                       const std::string& secret, const std::optional<elastic::HeadRecord>& head);

struct RemovedJob {
  std::size_t keys = 0;
  std::size_t members = 0;  // that were taken by surprise
  bool was_finished = false;
};

// Removes all keys of a job. Refuses (kInvalidArgument) while it has members, unless `force`, and whoever does not know
// its secret. kNotFound: no such job.
Result<RemovedJob> remove_job(elastic::KvStore& store, const std::string& job, const std::string& secret, bool force);

// kNotFound, in the words that all commands use, with the jobs of the store that may be meant.
Error no_such_job(elastic::KvStore& store, const std::string& job);

// Settings of a spec as the configuration of `everstep train`, with those of a host from `host`.
Result<Config> config_of(const elastic::JobSpec& spec, const std::vector<Setting>& host);

}  // namespace everstep::launcher
