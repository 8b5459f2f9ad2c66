#include "launcher/proof/stored_request.h"

#include <string_view>

#include "launcher/cli/host.h"
#include "launcher/job/checkpoint_request.h"
#include "launcher/job/data_digest.h"
#include "launcher/job/stored_model.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

// Where the run left its traces says nothing about what it computed.
bool is_of_the_place(const OptionSpec& option) {
  return option.side == OptionSide::kCommand || find_option(checkpoint_options(), option.name) != nullptr;
}

}  // namespace

Result<TrainRequest> stored_request(const storage::Manifest& manifest, const std::string& data) {
  const storage::Settings& settings = manifest.configuration;
  if (!setting_of(settings, "emulate").empty()) {
    return invalid_argument("the run was emulated: it computed no numbers that could be compared");
  }
  CommandSpec spec;
  spec.name = "train";
  spec.options = train_options();
  ParsedArgs args;
  for (const OptionSpec& option : spec.options) {
    const std::string_view value = setting_of(settings, option.name);
    if (!value.empty() && !is_of_the_place(option)) args.values[option.name] = value;
  }
  if (!data.empty()) args.values["data"] = data;
  const auto config = merge_config(spec, {.args = args});
  if (!config) return config.error();
  Outcome failure;
  TrainRequest request = read_train_request(*config, host_memory_bytes(), failure);
  if (failure) return failure->error;
  request.options.schedule.window = manifest.plan.window;
  return request;
}

Status check_same_data(const storage::Manifest& manifest, const std::string& path) {
  const std::string_view stored = setting_of(manifest.configuration, "data-digest");
  const auto digest = data_digest(path, *storage::make_openssl_hashing());
  if (!digest) return digest.error();
  if (stored.empty() || *digest == stored) return {};
  return invalid_argument(path + " is not the data that was trained on: size or contents differ",
                          "--data=FILE names where it lies now");
}

}  // namespace everstep::launcher
