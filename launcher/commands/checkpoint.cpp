#include <string>

#include "launcher/checkpoint/checkpoint_details.h"
#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/commands/checkpoint_parts.h"
#include "launcher/commands/commands.h"

namespace everstep::launcher {
namespace {

Outcome run_list(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  CheckpointTool tool;
  if (auto failure = open_tool(config, values, tool)) return failure;
  const auto list = list_checkpoints(*tool.store, tool.location);
  if (!list) return list.error();
  streams.out << (json ? to_text(list_json(*list, tool.location)) + "\n"
                       : list_text(*list, tool.location, streams.out_columns));
  return {};
}

Outcome run_show(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  CheckpointTool tool;
  storage::CatalogEntry entry;
  if (auto failure = open_tool(config, values, tool)) return failure;
  if (auto failure = choose(config, tool, 0, entry)) return failure;
  streams.out << (json ? to_text(details_json(entry, tool.location)) + "\n"
                       : details_text(entry, tool.location, streams.out_columns));
  return {};
}

Outcome set_pin(const Config& config, Streams& streams, bool pinned) {
  Values values(config);
  const bool json = values.flag("json");
  CheckpointTool tool;
  storage::CatalogEntry entry;
  if (auto failure = open_tool(config, values, tool)) return failure;
  if (auto failure = choose(config, tool, 0, entry)) return failure;
  storage::Catalog& catalog = tool.store->catalog();
  const Status done = pinned ? catalog.pin(entry) : catalog.unpin(entry);
  if (!done) return done.error();
  if (json) {
    streams.out << to_text(summary_json(entry).set("pinned", pinned)) << "\n";
  } else {
    streams.out << to_string(entry.manifest.name) << (pinned ? " is pinned\n" : " is not pinned\n");
  }
  return {};
}

Outcome run_pin(const Config& config, Streams& streams) { return set_pin(config, streams, true); }
Outcome run_unpin(const Config& config, Streams& streams) { return set_pin(config, streams, false); }

Command list_part() {
  CommandSpec spec;
  spec.name = "checkpoint ls";
  spec.summary = "List the checkpoints of a job";
  spec.text =
      "Prints a row per committed checkpoint, newest first. A live checkpoint was taken of a full pipeline, a flush "
      "checkpoint of an empty one, an in-window checkpoint between two updates. Reads small documents only: everstep "
      "checkpoint verify reads every byte.";
  spec.examples = {"everstep checkpoint ls --checkpoint-dir=checkpoints",
                   "everstep checkpoint ls --checkpoint-dir=checkpoints --job=first --json"};
  spec.options = checkpoint_tool_options();
  return {spec, run_list};
}

Command show_part() {
  CommandSpec spec;
  spec.name = "checkpoint show";
  spec.summary = "Show what one checkpoint holds";
  spec.text =
      "Prints where in the run the checkpoint was taken, under which plan, the files of every block, and the "
      "configuration and the versions of the programs that were in force.";
  spec.examples = {"everstep checkpoint show --checkpoint-dir=checkpoints",
                   "everstep checkpoint show 120 --checkpoint-dir=checkpoints --json"};
  spec.options = checkpoint_tool_options();
  spec.positional = checkpoint_argument(false);
  return {spec, run_show};
}

Command pin_part(bool pins) {
  CommandSpec spec;
  spec.name = pins ? "checkpoint pin" : "checkpoint unpin";
  spec.summary = pins ? "Keep a checkpoint whatever is pruned" : "Let a pinned checkpoint be pruned";
  spec.text = pins ? "Marks a checkpoint so that no retention rule removes it, neither in training nor by hand."
                   : "Takes the mark of everstep checkpoint pin away. Nothing is removed before the next prune.";
  spec.examples = {"everstep " + spec.name + " 120 --checkpoint-dir=checkpoints"};
  spec.options = checkpoint_tool_options();
  spec.positional = checkpoint_argument(true);
  return {spec, pins ? run_pin : run_unpin};
}

}  // namespace

Command checkpoint_command() {
  Command command;
  command.spec.name = "checkpoint";
  command.spec.summary = "List, verify, compare, prune, export and import checkpoints";
  command.spec.text =
      "Works on the checkpoints of one job, those that everstep train --checkpoint-dir=DIR --job=NAME writes. A "
      "checkpoint is named by its step, by its name, or HEAD for the newest one.";
  command.spec.examples = {"everstep checkpoint ls --checkpoint-dir=checkpoints",
                           "everstep checkpoint verify --checkpoint-dir=checkpoints",
                           "everstep checkpoint export --checkpoint-dir=checkpoints --output=my-gpt2"};
  command.parts = {list_part(),
                   show_part(),
                   checkpoint_verify_part(),
                   checkpoint_diff_part(),
                   pin_part(true),
                   pin_part(false),
                   checkpoint_prune_part(),
                   checkpoint_export_part(),
                   checkpoint_import_part()};
  return command;
}

}  // namespace everstep::launcher
