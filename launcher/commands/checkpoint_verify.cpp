#include <string>
#include <thread>

#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/checkpoint/verification.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/table.h"
#include "launcher/commands/checkpoint_parts.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::Json;

// What was verified and what came out, besides what could not even be listed.
struct Findings {
  std::vector<CatalogEntry> entries;
  std::vector<Status> found;
  std::vector<storage::Damage> damaged;

  std::size_t checked() const { return entries.size() + damaged.size(); }
  std::size_t bad() const {
    std::size_t count = damaged.size();
    for (const Status& status : found) count += status.ok() ? 0 : 1;
    return count;
  }
};

std::string findings_text(const Findings& findings, const StoreLocation& location, std::size_t columns) {
  Table table;
  table.columns = {{"step", Align::kRight}, {"size", Align::kRight}, {"files", Align::kRight}, {"name"}, {"found"}};
  for (std::size_t i = 0; i < findings.entries.size(); ++i) {
    const storage::Manifest& manifest = findings.entries[i].manifest;
    table.rows.push_back({std::to_string(manifest.version.value), size_text(manifest.bytes()),
                          std::to_string(manifest.files.size()), to_string(manifest.name),
                          findings.found[i].ok() ? "good" : findings.found[i].error().message});
  }
  for (const storage::Damage& damage : findings.damaged) {
    table.rows.push_back({"-", "-", "-", damage.checkpoint, damage.error.message});
  }
  return (table.rows.empty() ? "no checkpoints\n" : to_text(table, columns)) + authenticity_line(location);
}

Json findings_json(const Findings& findings, const StoreLocation& location) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < findings.entries.size(); ++i) {
    Json row = summary_json(findings.entries[i]);
    const Status& found = findings.found[i];
    row.set("good", found.ok()).set("error", found.ok() ? Json(nullptr) : Json(found.error().message));
    rows.append(std::move(row));
  }
  Json damaged = Json::array();
  for (const storage::Damage& damage : findings.damaged) damaged.append(damage_json(damage));
  Json json = Json::object();
  json.set("job", location.job).set("authenticity", authenticity_word(location)).set("good", findings.bad() == 0);
  return json.set("checkpoints", std::move(rows)).set("damaged", std::move(damaged));
}

// The error that decides the exit code: damage, or a disk that could not be read.
Outcome outcome_of(const Findings& findings) {
  if (findings.bad() == 0) return {};
  ErrorCode code = ErrorCode::kDataLoss;
  for (const Status& status : findings.found) {
    if (!status.ok() && status.error().code != ErrorCode::kDataLoss && findings.bad() == 1) code = status.error().code;
  }
  const std::string all = std::to_string(findings.checked());
  return Error{code, std::to_string(findings.bad()) + " of " + all + " did not verify", ""};
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  const bool has_threads = config.is_set("threads");
  const std::int64_t threads = has_threads ? values.integer("threads", {.min = 1, .max = 256})
                                           : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  CheckpointTool tool;
  if (auto failure = open_tool(config, values, tool)) return failure;
  Findings findings;
  if (config.positional.empty()) {
    findings.entries = tool.listing.entries;
    findings.damaged = tool.listing.damaged;
  } else {
    if (auto failure = choose(config, tool, 0, findings.entries.emplace_back())) return failure;
  }
  auto found = verify_checkpoints(*tool.store, findings.entries, static_cast<int>(threads), streams);
  if (!found) return found.error();
  findings.found = std::move(found).value();
  streams.out << (json ? to_text(findings_json(findings, tool.location)) + "\n"
                       : findings_text(findings, tool.location, streams.out_columns));
  return outcome_of(findings);
}

}  // namespace

Command checkpoint_verify_part() {
  CommandSpec spec;
  spec.name = "checkpoint verify";
  spec.summary = "Read every byte and tell what is damaged";
  spec.text =
      "Compares size and SHA-256 of every file that a checkpoint names, of its manifest, its commit record and the "
      "ledger, with what was written. Ends with exit code 65 if anything is damaged or missing. With --secret-file "
      "it also tells whether the documents were written by somebody who has the secret.";
  spec.examples = {"everstep checkpoint verify --checkpoint-dir=checkpoints",
                   "everstep checkpoint verify HEAD --checkpoint-dir=checkpoints --secret-file=job.secret"};
  spec.options = checkpoint_tool_options(
      {{.name = "threads", .value_name = "N", .help = "Files to read at a time; if not set, one per core"}});
  spec.positional = checkpoint_argument(false);
  spec.positional.help = "A step, a name, or HEAD; all checkpoints if it is left out";
  return {spec, run};
}

}  // namespace everstep::launcher
