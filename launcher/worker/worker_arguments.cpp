#include "launcher/worker/worker_arguments.h"

#include "base/text.h"
#include "launcher/job/train_request.h"

namespace everstep::launcher {
namespace {

CommandSpec worker_spec() {
  CommandSpec spec;
  spec.name = "worker";
  spec.options = train_options();
  spec.options.push_back({.name = "rank", .value_name = "N", .help = "Number of this worker in the plan"});
  spec.options.push_back({.name = "lineage", .value_name = "HEX", .help = "The run's random number"});
  spec.options.push_back({.name = "generation", .value_name = "N", .help = "Number of this run in its lineage"});
  spec.options.push_back({.name = "start-from", .value_name = "SHA256", .help = "Manifest to resume from"});
  spec.options.push_back({.name = "device-number", .value_name = "N", .help = "Which device of its kind"});
  return spec;
}

}  // namespace

std::vector<std::string> worker_arguments(const Config& config, const WorkerIdentity& identity) {
  std::vector<std::string> args;
  const auto add = [&](const std::string& name, const std::string& value) {
    args.push_back("--" + name + "=" + value);
  };
  for (const OptionSpec& option : train_options()) {
    const auto& text = config.setting(option.name).text;
    if (text && option.name != "output") add(option.name, *text);
  }
  add("output", identity.output);
  add("rank", std::to_string(identity.rank));
  add("lineage", hex_text(identity.lineage));
  add("generation", std::to_string(identity.generation.value));
  if (identity.start_from) add("start-from", to_string(*identity.start_from));
  if (identity.device_number) add("device-number", std::to_string(*identity.device_number));
  return args;
}

Result<WorkerInvocation> read_worker_arguments(const std::vector<std::string>& args) {
  const CommandSpec spec = worker_spec();
  const auto parsed = parse_args(spec, args);
  if (!parsed) return parsed.error();
  auto config = merge_config(spec, {.args = *parsed});
  if (!config) return config.error();
  const auto value = [&](std::string_view name) { return config->setting(name).text.value_or(""); };
  const auto rank = parse_number<int>(value("rank"));
  const auto lineage = parse_hex(value("lineage"));
  const auto generation = parse_number<std::int64_t>(value("generation"));
  const auto start_from = storage::parse_digest(value("start-from"));
  if (!rank || !lineage || !generation || start_from.has_value() != config->is_set("start-from")) {
    return invalid_argument("--rank, --lineage or --generation is missing", "everstep train starts this program");
  }
  const auto device_number = parse_number<int>(value("device-number"));
  WorkerIdentity identity{*rank, *lineage, value("output"), {*generation}, start_from, device_number};
  return WorkerInvocation{*std::move(config), std::move(identity)};
}

}  // namespace everstep::launcher
