#include <string>
#include <utility>
#include <vector>

#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/cli/long_work.h"
#include "launcher/commands/checkpoint_parts.h"
#include "launcher/job/retention_options.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using storage::Json;

std::string report_text(const storage::PruneReport& report, bool is_dry) {
  std::string text;
  for (const std::string& name : report.removed) text += (is_dry ? "would remove " : "removed ") + name + "\n";
  const std::string files = std::to_string(report.files) + (report.files == 1 ? " file" : " files");
  return text + (is_dry ? "would free " : "freed ") + size_text(report.bytes) + " in " + files + "\n";
}

Json report_json(const storage::PruneReport& report, bool is_dry) {
  Json removed = Json::array();
  for (const std::string& name : report.removed) removed.append(name);
  Json json = Json::object();
  json.set("dry_run", is_dry).set("removed", std::move(removed));
  return json.set("files", report.files).set("bytes", report.bytes);
}

Result<storage::PruneReport> prune(storage::Catalog& catalog, const storage::RetentionOptions& retention,
                                   Generation generation) {
  const auto lock = catalog.lock();
  if (!lock) return lock.error();
  return catalog.prune(retention, generation);
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  const bool is_dry = values.flag("dry-run");
  const storage::RetentionOptions retention = read_retention(values);
  CheckpointTool tool;
  if (auto failure = open_tool(config, values, tool)) return failure;
  // A job that trains has HEAD's generation or a newer one: what it is about to commit is not touched.
  Generation generation;
  if (!tool.listing.entries.empty()) generation = tool.listing.entries.front().manifest.name.generation;
  storage::Catalog& catalog = tool.store->catalog();
  const auto report = is_dry ? catalog.plan_prune(retention, generation) : prune(catalog, retention, generation);
  if (!report) return report.error();
  streams.out << (json ? to_text(report_json(*report, is_dry)) + "\n" : report_text(*report, is_dry));
  return {};
}

}  // namespace

Command checkpoint_prune_part() {
  CommandSpec spec;
  spec.name = "checkpoint prune";
  spec.summary = "Remove checkpoints that need not be kept";
  spec.text =
      "Keeps the last ones, those that the options name, and pinned ones; removes the others and files that no kept "
      "checkpoint names. Ledger segments always stay. Not for a job that trains now: everstep train prunes by itself, "
      "under the same options.";
  spec.examples = {"everstep checkpoint prune --checkpoint-dir=checkpoints --keep-last=2 --dry-run",
                   "everstep checkpoint prune --checkpoint-dir=checkpoints --keep-every=1000 --keep-best=1"};
  std::vector<OptionSpec> options = retention_options();
  options.push_back({.name = "dry-run", .help = "Only tell what would be removed"});
  spec.options = checkpoint_tool_options(std::move(options));
  return {spec, run};
}

}  // namespace everstep::launcher
