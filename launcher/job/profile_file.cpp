#include "launcher/job/profile_file.h"

#include <cmath>

#include "storage/json/json.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

using scheduler::BlockProfile;
using scheduler::ModelProfile;
using storage::JsonReader;

constexpr std::int64_t kMostRepeats = 10'000;

Status read_integer(const JsonReader& object, std::string_view name, std::int64_t& value) {
  if (!object.has(name)) return {};
  const auto read = object.integer_at(name, 0);
  if (!read) return read.error();
  value = *read;
  return {};
}

Status read_milliseconds(const JsonReader& object, std::string_view name, Tick& ticks) {
  constexpr double kHourInMs = 3.6e6;
  const auto read = object.number_at(name, 0, kHourInMs);
  if (!read) return read.error();
  ticks = std::llround(*read * 1e6);
  return {};
}

Status append_blocks(const JsonReader& object, ModelProfile& profile) {
  EVERSTEP_TRY(object.only({"name", "repeat", "parameters", "activation_bytes", "working_bytes", "output_bytes",
                            "forward_ms", "backward_ms", "weights_ms"}));
  BlockProfile block;
  const auto name = object.text_at("name");
  if (!name) return name.error();
  EVERSTEP_TRY(read_integer(object, "parameters", block.parameters));
  EVERSTEP_TRY(read_integer(object, "activation_bytes", block.activation_bytes));
  EVERSTEP_TRY(read_integer(object, "working_bytes", block.working_bytes));
  EVERSTEP_TRY(read_integer(object, "output_bytes", block.output_bytes));
  EVERSTEP_TRY(read_milliseconds(object, "forward_ms", block.forward));
  EVERSTEP_TRY(read_milliseconds(object, "backward_ms", block.backward));
  block.weights = block.backward / 2;
  if (object.has("weights_ms")) EVERSTEP_TRY(read_milliseconds(object, "weights_ms", block.weights));
  std::int64_t repeat = 1;
  if (object.has("repeat")) {
    const auto read = object.integer_at("repeat", 1, kMostRepeats);
    if (!read) return read.error();
    repeat = *read;
  }
  for (std::int64_t i = 0; i < repeat; ++i) {
    block.name = repeat == 1 ? *name : *name + " " + std::to_string(i);
    profile.blocks.push_back(block);
  }
  return {};
}

}  // namespace

Result<ModelProfile> parse_profile(std::string_view text) {
  const auto json = storage::parse_json(text);
  if (!json) return json.error();
  const JsonReader root(*json);
  EVERSTEP_TRY(
      root.only({"name", "tokens_per_minibatch", "weight_bytes", "gradient_bytes", "optimizer_bytes", "blocks"}));
  ModelProfile profile;
  const auto name = root.text_at("name");
  if (!name) return name.error();
  profile.name = *name;
  EVERSTEP_TRY(read_integer(root, "tokens_per_minibatch", profile.tokens_per_minibatch));
  EVERSTEP_TRY(read_integer(root, "weight_bytes", profile.weight_bytes));
  EVERSTEP_TRY(read_integer(root, "gradient_bytes", profile.gradient_bytes));
  EVERSTEP_TRY(read_integer(root, "optimizer_bytes", profile.optimizer_bytes));
  const auto blocks = root.elements_at("blocks");
  if (!blocks) return blocks.error();
  for (const JsonReader& block : *blocks) EVERSTEP_TRY(append_blocks(block, profile));
  EVERSTEP_TRY(check(profile));
  return profile;
}

}  // namespace everstep::launcher
