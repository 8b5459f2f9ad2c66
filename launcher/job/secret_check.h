#pragma once

#include <string>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/job/checkpoint_store.h"

namespace everstep::launcher {

// Whether a run with that secret, or with none, may go on from the checkpoint that is `wanted` (see choose_checkpoint).
// Refuses in words one that was made with a secret if there is none now, unless --drop-secret says so: what follows
// would be unsigned, and whoever has the secret would call it damaged. Refuses also one that was made without a secret
// if there is one now. Says nothing about whether the secret is the right one, or about checkpoints that are not there.
Outcome check_secret(const Config& config, const StoreLocation& location, const std::string& wanted);

// The option that `everstep train` and `everstep resume` have for it.
OptionSpec drop_secret_option();

}  // namespace everstep::launcher
