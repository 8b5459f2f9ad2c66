#include <string>

#include "base/log_line.h"
#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/checkpoint/checkpoint_tool.h"
#include "launcher/checkpoint/model_import.h"
#include "launcher/commands/checkpoint_parts.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/resume_command.h"
#include "launcher/job/store_options.h"
#include "launcher/job/stored_model.h"

namespace everstep::launcher {
namespace {

// The options of `everstep train` that say what the model is, none of them set unless it is given.
std::vector<OptionSpec> imported_shape_options() {
  std::vector<OptionSpec> options = shape_options();
  for (OptionSpec& option : options) {
    if (option.name == "model") option.help = "Instead of config.json: sizes by name, to be changed by what follows";
    option.default_text.clear();
  }
  return options;
}

Outcome read_model(const Config& config, trainer::ModelConfig& model) {
  storage::Settings settings;
  for (const OptionSpec& option : shape_options()) {
    settings.emplace_back(option.name, config.setting(option.name).text.value_or(""));
  }
  const auto read = stored_model(settings);
  if (!read) return config.reject("model", read.error().message);
  model = *read;
  return {};
}

// Sizes without a model to change would be ignored.
Outcome check_sizes(const Config& config) {
  for (const OptionSpec& option : shape_options()) {
    if (config.setting(option.name).source == Source::kFlag && !config.is_set("model")) {
      return config.reject(option.name, "is taken from config.json", "give --model too, to leave that file out");
    }
  }
  return {};
}

// What to type to train it; what does not follow from the model is left open.
std::string train_command(const StoreLocation& location, const storage::Settings& settings) {
  std::string command = "everstep train --workers=N --data=PATH --resume --checkpoint-dir=";
  command.append(shell_word(location.directory)).append(" --job=").append(location.job);
  for (const auto& [name, value] : settings) {
    if (name == "next-sentence" && value == "true") command += " --next-sentence";
    if (name == "next-sentence" || name == "precision" || value.empty()) continue;
    command.append(" --").append(name).append("=").append(value);
  }
  return command;
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  const std::string input = values.path("input");
  const bool has_model = config.is_set("model");
  Outcome failure;
  const StoreLocation location = read_store_location(config, values, failure);
  if (!failure) failure = check_sizes(config);
  trainer::ModelConfig model;
  if (!failure && has_model) failure = read_model(config, model);
  if (failure) return failure;

  const auto source = open_foreign_model(input, !has_model);
  if (!source) return config.blame("input", source.error());
  if (source->model) model = *source->model;
  const auto plan = plan_import(model, source->content);
  if (!plan) return config.blame("input", plan.error());
  const auto store = open_checkpoint_store(location, StoreAccess::kCreate);
  if (!store) return blame_store(config, store.error());
  const auto lock = (*store)->catalog().lock();
  if (!lock) return config.blame("checkpoint-dir", lock.error());
  const auto entry = import_model(**store, location.job, *source, model, *plan, streams);
  if (!entry) return entry.error();

  for (const std::string& name : plan->ignored) {
    print_event(streams, LogLine("tensor_ignored").add("name", name).text());
  }
  const std::string command = train_command(location, entry->manifest.configuration);
  if (json) {
    streams.out << to_text(summary_json(*entry).set("train", command)) << "\n";
  } else {
    streams.out << "imported as " << to_string(entry->manifest.name) << "; to train it:\n  " << command << "\n";
  }
  return {};
}

}  // namespace

Command checkpoint_import_part() {
  CommandSpec spec;
  spec.name = "checkpoint import";
  spec.summary = "Start a job from a model in Hugging Face's format";
  spec.text =
      "Makes the first checkpoint of a job, step 0, from the weights of a GPT-2 or BERT in float32 or bfloat16, from "
      "which everstep train --resume goes on. What the model is stands in config.json beside the weights, or in "
      "--model and the options for its sizes. Prints the options to train it with.";
  spec.examples = {"everstep checkpoint import --input=my-gpt2 --checkpoint-dir=checkpoints --job=tuned",
                   "everstep checkpoint import --input=weights.safetensors --model=gpt2-small "
                   "--checkpoint-dir=checkpoints"};
  std::vector<OptionSpec> options{{.name = "input",
                                   .value_name = "PATH",
                                   .help = "A .safetensors file, or a directory with model.safetensors and config.json",
                                   .required = true}};
  for (OptionSpec& option : imported_shape_options()) options.push_back(std::move(option));
  spec.options = checkpoint_tool_options(std::move(options));
  return {spec, run};
}

}  // namespace everstep::launcher
