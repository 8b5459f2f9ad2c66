#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/manifest.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// The value of a setting; empty if it is not there.
std::string_view setting_of(const storage::Settings& settings, std::string_view name);

// The model whose state a checkpoint holds: what the options of `everstep train` of these names make. kInvalidArgument
// names the setting that is missing or makes no sense.
Result<trainer::ModelConfig> stored_model(const storage::Settings& configuration);

// The settings under which `everstep train` makes that model: a name it knows, and its sizes where they are others.
storage::Settings model_settings(const trainer::ModelConfig& model);

}  // namespace everstep::launcher
