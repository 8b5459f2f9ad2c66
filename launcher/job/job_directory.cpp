#include "launcher/job/job_directory.h"

#include <utility>

#include "launcher/job/store_options.h"

namespace everstep::launcher {

PositionalSpec job_directory_argument() {
  return {"CHECKPOINT-DIR", "Where checkpoints are, in a directory per job: what --checkpoint-dir of train names", 1,
          1};
}

std::vector<OptionSpec> job_directory_options(std::vector<OptionSpec> others) {
  std::vector<OptionSpec> options = job_options();
  for (OptionSpec& option : others) options.push_back(std::move(option));
  options.push_back({.name = "json", .help = "Print JSON"});
  return options;
}

Outcome open_job_directory(const Config& config, Values& values, OpenedJob& job) {
  Outcome failure;
  job.location = read_job_location(config.positional.front(), config, values, failure);
  if (failure) return failure;
  auto store = open_checkpoint_store(job.location, StoreAccess::kExisting);
  if (!store) {
    const bool is_wrong = store.error().code != ErrorCode::kUnavailable;
    return is_wrong ? Failure(store.error(), ExitCode::kUsage) : Failure(store.error());
  }
  job.store = std::move(store).value();
  return {};
}

}  // namespace everstep::launcher
