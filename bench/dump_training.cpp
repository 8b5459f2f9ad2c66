// dump_training train --output=DIR …: takes the options of `everstep train`, trains nothing, and writes what a run with
// them would begin with and be fed, so that another program can train the same: training.json (sizes, optimizer, the
// learning rate of every update, where each parameter lies), weights.f32 (the initial weights) and batches.i64 (the
// minibatches of all updates, one after the other: tokens, labels and, for BERT, segments, used tokens and whether the
// second sentence follows).

#include <filesystem>
#include <iostream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/cli/files.h"
#include "launcher/job/train_request.h"
#include "storage/json/json.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

using storage::Json;

template <typename Number>
void append_numbers(std::string& bytes, const std::vector<Number>& numbers) {
  const std::vector<std::int64_t> wide(numbers.begin(), numbers.end());
  bytes.append(reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(std::int64_t));
}

Result<std::string> batches_of(const TrainRequest& request) {
  const auto data = trainer::open_data(*request.data, request.options.model);
  if (!data) return data.error();
  std::string bytes;
  for (std::int64_t position = 0; position < request.options.steps * request.plan.window; ++position) {
    const auto minibatch = (*data)->training({position});
    if (!minibatch) return minibatch.error();
    append_numbers(bytes, minibatch->tokens);
    append_numbers(bytes, minibatch->labels);
    append_numbers(bytes, minibatch->segments);
    append_numbers(bytes, minibatch->used);
    append_numbers(bytes, minibatch->follows);
  }
  return bytes;
}

std::string weights_of(const trainer::ModelConfig& model, const trainer::StageLayout& layout) {
  const trainer::Buffer weights = trainer::allocate_zeroed(static_cast<std::size_t>(layout.elements) * sizeof(float));
  trainer::initialise_master(model, layout, weights);
  return {reinterpret_cast<const char*>(weights.data), weights.size};
}

Json parameters_json(const trainer::StageLayout& layout) {
  Json parameters = Json::array();
  for (const trainer::StageLayout::Entry& entry : layout.entries) {
    Json shape = Json::array();
    for (const std::int64_t size : entry.parameter.shape) shape.append(size);
    Json json = Json::object();
    json.set("name", entry.parameter.name).set("shape", std::move(shape)).set("offset", entry.offset);
    parameters.append(json.set("decay", entry.parameter.decay).set("tied", entry.parameter.tied));
  }
  return parameters;
}

Json training_json(const TrainRequest& request, const trainer::StageLayout& layout) {
  const trainer::TrainOptions& options = request.options;
  const scheduler::ModelShape& shape = options.model.shape;
  Json json = Json::object();
  json.set("family", shape.family == scheduler::ModelFamily::kGpt ? "gpt" : "bert").set("layers", shape.layers);
  json.set("heads", shape.heads).set("sequence", shape.sequence).set("next_sentence", options.model.next_sentence);
  json.set("steps", options.steps).set("window", request.plan.window).set("minibatch", options.model.minibatch);
  json.set("beta1", options.adam.beta1).set("beta2", options.adam.beta2).set("epsilon", options.adam.epsilon);
  json.set("weight_decay", options.adam.weight_decay).set("clip_norm", options.adam.clip_norm);
  Json rates = Json::array();
  const std::int64_t samples_per_step = std::int64_t{request.plan.window} * options.model.minibatch;
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    rates.append(options.learning_rate.at(step * samples_per_step));
  }
  return json.set("learning_rates", std::move(rates)).set("parameters", parameters_json(layout));
}

Outcome dump_training(const Config& config, Streams& /*streams*/) {
  Outcome failure;
  const TrainRequest request = read_train_request(config, std::numeric_limits<std::int64_t>::max(), failure);
  if (failure) return failure;
  if (!request.data || request.output.empty()) return invalid_argument("--data and --output are needed here");
  const auto batches = batches_of(request);
  if (!batches) return batches.error();
  const trainer::ModelConfig& model = request.options.model;
  const trainer::StageLayout layout = trainer::layout_of(model, 0, model.blocks());

  std::filesystem::create_directories(request.output);
  const std::pair<std::string, std::string> files[] = {{"training.json", to_text(training_json(request, layout))},
                                                       {"weights.f32", weights_of(model, layout)},
                                                       {"batches.i64", *batches}};
  for (const auto& [name, content] : files) {
    if (const Status written = write_file(request.output + "/" + name, content); !written) return written.error();
  }
  return std::nullopt;
}

}  // namespace
}  // namespace everstep::launcher

int main(int argc, char** argv) {
  using namespace everstep::launcher;  // NOLINT(google-build-using-namespace): main has no namespace of its own
  everstep::trainer::prepare_torch(1);
  const Command command{{.name = "train",
                         .summary = "Write what a run would begin with and be fed",
                         .text = "Takes the options of everstep train and writes its initial weights and minibatches.",
                         .options = train_options()},
                        dump_training};
  Streams streams{std::cout, std::cerr};
  return static_cast<int>(run_command_line({command}, {{argv + 1, argv + argc}, {}}, streams));
}
