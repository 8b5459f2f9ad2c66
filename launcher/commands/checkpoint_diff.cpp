#include <string>

#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/checkpoint/comparison.h"
#include "launcher/commands/checkpoint_parts.h"

namespace everstep::launcher {
namespace {

enum Only : std::size_t { kAll, kTensors, kSettings };

// The job that B is of: A's, unless other options say otherwise.
Outcome open_other(const Config& config, Values& values, const CheckpointTool& a, CheckpointTool& b) {
  b.location = a.location;
  if (config.is_set("other-dir")) b.location.directory = values.path("other-dir");
  if (config.is_set("other-job")) b.location.job = values.path("other-job");
  if (values.failure()) return values.failure();
  const std::string_view named = config.is_set("other-dir") ? "other-dir" : "other-job";
  const auto blame = [&](const Error& error) { return config.blame(named, error); };
  auto store = open_checkpoint_store(b.location, StoreAccess::kExisting);
  if (!store) return blame(store.error());
  b.store = std::move(store).value();
  auto listing = b.store->catalog().list();
  if (!listing) return blame(listing.error());
  b.listing = std::move(listing).value();
  return {};
}

std::string summary(const Comparison& comparison) {
  return std::to_string(comparison.settings.size()) + " settings and " + std::to_string(comparison.tensors.size()) +
         " tensors differ";
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  const std::size_t only = values.choice("only", {"all", "tensors", "settings"});
  const auto rows = static_cast<std::size_t>(values.integer("rows", {.min = 0, .max = 1'000'000}));
  if (values.failure()) return values.failure();
  CheckpointTool tool_a;
  CheckpointTool tool_b;
  storage::CatalogEntry a;
  storage::CatalogEntry b;
  if (auto failure = open_tool(config, values, tool_a)) return failure;
  if (auto failure = open_other(config, values, tool_a, tool_b)) return failure;
  if (auto failure = choose(config, tool_a, 0, a)) return failure;
  if (auto failure = choose(config, tool_b, 1, b)) return failure;

  Comparison comparison;
  if (only != kTensors) comparison.settings = compare_settings(a.manifest, b.manifest);
  if (only != kSettings) {
    const Status compared = compare_tensors({*tool_a.store, a}, {*tool_b.store, b}, streams, comparison);
    if (!compared) return compared.error();
  }
  streams.out << (json ? to_text(comparison_json(comparison)) + "\n"
                       : comparison_text(comparison, rows, streams.out_columns));
  if (comparison.equal()) return {};
  return Failure({ErrorCode::kInvalidArgument, summary(comparison), ""}, ExitCode::kDifferent);
}

}  // namespace

Command checkpoint_diff_part() {
  CommandSpec spec;
  spec.name = "checkpoint diff";
  spec.summary = "Compare two checkpoints, number by number";
  spec.text =
      "Tells which settings differ, and for every tensor that does, how many of its elements (by their bits) and by "
      "how "
      "much at most. Like diff it ends with exit code 0 if nothing differs and 1 if something does. Every file is "
      "verified before it is compared; files of equal SHA-256 are not read.";
  spec.examples = {"everstep checkpoint diff 100 120 --checkpoint-dir=checkpoints",
                   "everstep checkpoint diff HEAD HEAD --checkpoint-dir=one --other-dir=two --only=tensors"};
  spec.options = checkpoint_tool_options({
      {.name = "other-dir", .value_name = "DIR", .help = "Where B is; if not set, where A is"},
      {.name = "other-job", .value_name = "NAME", .help = "Whose B is; if not set, A's job"},
      {.name = "only", .value_name = "WHAT", .default_text = "all", .help = "all, tensors or settings"},
      {.name = "rows", .value_name = "N", .default_text = "20", .help = "Tensors to list"},
  });
  spec.positional = {"A B", "Steps, names, or HEAD", 2, 2};
  return {spec, run};
}

}  // namespace everstep::launcher
