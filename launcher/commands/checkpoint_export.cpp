#include <string>

#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/checkpoint/model_export.h"
#include "launcher/cli/long_work.h"
#include "launcher/commands/checkpoint_parts.h"

namespace everstep::launcher {
namespace {

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  (void)values.choice("format", {"safetensors"});
  const std::string output = values.path("output");
  CheckpointTool tool;
  storage::CatalogEntry entry;
  if (auto failure = open_tool(config, values, tool)) return failure;
  if (auto failure = choose(config, tool, 0, entry)) return failure;
  const auto report = export_safetensors(*tool.store, entry, output, streams);
  if (!report) return report.error();
  if (json) {
    storage::Json result = summary_json(entry);
    storage::Json files = storage::Json::array();
    const std::string directory = output + "/";
    for (const std::string& name : report->files) files.append(directory + name);
    result.set("authenticity", authenticity_word(tool.location)).set("files", std::move(files));
    streams.out << to_text(result.set("tensors", report->tensors).set("tensor_bytes", report->bytes)) << "\n";
    return {};
  }
  streams.out << "step " << entry.manifest.version.value << ": " << report->tensors << " tensors, "
              << size_text(report->bytes) << ", in " << output << "\n"
              << authenticity_line(tool.location);
  return {};
}

}  // namespace

Command checkpoint_export_part() {
  CommandSpec spec;
  spec.name = "checkpoint export";
  spec.summary = "Write the model as Hugging Face's transformers loads it";
  spec.text =
      "Writes model.safetensors and config.json for GPT2LMHeadModel, BertForMaskedLM or (with the next-sentence head) "
      "BertForPreTraining, so that from_pretrained(DIR) loads the model. Optimizer state is left out. Every byte is "
      "verified on the way; the files appear when they are complete.";
  spec.examples = {"everstep checkpoint export --checkpoint-dir=checkpoints --output=my-gpt2",
                   "everstep checkpoint export 120 --checkpoint-dir=checkpoints --format=safetensors --output=step120"};
  spec.options = checkpoint_tool_options({
      {.name = "format", .value_name = "F", .default_text = "safetensors", .help = "safetensors"},
      {.name = "output",
       .value_name = "DIR",
       .help = "Directory to write to; made if it is missing",
       .required = true,
       .command_line_only = true},
  });
  spec.positional = checkpoint_argument(false);
  return {spec, run};
}

}  // namespace everstep::launcher
