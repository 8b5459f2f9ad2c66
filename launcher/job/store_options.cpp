#include "launcher/job/store_options.h"

#include <utility>

namespace everstep::launcher {

std::vector<OptionSpec> job_options() {
  return {
      {.name = "job",
       .value_name = "NAME",
       .default_text = "job",
       .help = "Name of the job, and of its directory",
       .side = OptionSide::kCommand},
      {.name = "secret-file",
       .value_name = "FILE",
       .help = "Only who has this secret can have written what is read; if not set, authenticity is not checked",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
  };
}

std::vector<OptionSpec> store_options(bool required) {
  std::vector<OptionSpec> options = job_options();
  options.insert(options.begin(), {.name = "checkpoint-dir",
                                   .value_name = "DIR",
                                   .help = "Where checkpoints are, in a directory per job",
                                   .required = required,
                                   .is_path = true,
                                   .on_resume = OnResume::kImplied});
  return options;
}

StoreLocation read_store_location(const Config& config, Values& values, Outcome& failure) {
  return read_job_location(values.path("checkpoint-dir"), config, values, failure);
}

StoreLocation read_job_location(std::string directory, const Config& config, Values& values, Outcome& failure) {
  StoreLocation location;
  location.directory = std::move(directory);
  location.job = values.path("job");
  const std::string secret_file = config.is_set("secret-file") ? values.path("secret-file") : "";
  failure = values.failure();
  if (failure || secret_file.empty()) return location;
  auto secret = read_secret_file(secret_file);
  if (!secret) {
    failure = config.blame("secret-file", secret.error());
    return location;
  }
  location.secret = std::move(secret).value();
  return location;
}

Failure blame_store(const Config& config, const Error& error) {
  const bool is_no_directory = error.code == ErrorCode::kDataLoss || error.code == ErrorCode::kNotFound;
  if (is_no_directory) return config.reject("checkpoint-dir", error.message, error.hint);
  return config.blame("checkpoint-dir", error);
}

}  // namespace everstep::launcher
