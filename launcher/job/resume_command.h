#pragma once

#include <optional>
#include <string>

#include "launcher/cli/config.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/catalog.h"

namespace everstep::launcher {

// The newest checkpoint that the files tell of; nothing: none was saved, or none can be read.
std::optional<storage::CatalogEntry> newest_saved(const StoreLocation& location);

// What a person types to go on with a run of this configuration (of `everstep train`, with --checkpoint-dir set):
// "everstep resume --from=runs/first/checkpoints/job", and with it what no checkpoint stores because it belongs to a
// host. Paths below the working directory are shown from there.
std::string resume_command(const Config& config);

// As a shell takes it for one word.
std::string shell_word(const std::string& text);

}  // namespace everstep::launcher
