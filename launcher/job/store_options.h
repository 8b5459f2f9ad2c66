#pragma once

#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/options.h"
#include "launcher/cli/values.h"
#include "launcher/job/checkpoint_store.h"

namespace everstep::launcher {

// --job and --secret-file, under the names that all commands use; and --checkpoint-dir before them.
std::vector<OptionSpec> job_options();
std::vector<OptionSpec> store_options(bool required);

// Reads them; --checkpoint-dir must be set, unless the directory is given. Fills `failure` instead if one does not fit.
StoreLocation read_store_location(const Config& config, Values& values, Outcome& failure);
StoreLocation read_job_location(std::string directory, const Config& config, Values& values, Outcome& failure);

// For an error of open_checkpoint_store(): a place that is no directory is a wrong --checkpoint-dir, no damage.
Failure blame_store(const Config& config, const Error& error);

}  // namespace everstep::launcher
