#pragma once

#include <vector>

#include "launcher/cli/options.h"
#include "launcher/cli/values.h"
#include "storage/retention.h"

namespace everstep::launcher {

// --keep-last, --keep-every and --keep-best, under the names that all commands use.
std::vector<OptionSpec> retention_options();

storage::RetentionOptions read_retention(Values& values);

}  // namespace everstep::launcher
