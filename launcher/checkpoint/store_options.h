#pragma once

#include <vector>

#include "launcher/checkpoint/checkpoint_store.h"
#include "launcher/config.h"
#include "launcher/options.h"
#include "launcher/values.h"

namespace everstep::launcher {

// --checkpoint-dir, --job and --secret-file, under the names that all commands use.
std::vector<OptionSpec> store_options(bool required);

// Reads them; --checkpoint-dir must be set. Fills `failure` instead if one does not fit.
StoreLocation read_store_location(const Config& config, Values& values, Outcome& failure);

// For an error of open_checkpoint_store(): a place that is no directory is a wrong --checkpoint-dir, no damage.
Failure blame_store(const Config& config, const Error& error);

}  // namespace everstep::launcher
