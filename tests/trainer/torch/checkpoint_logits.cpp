// Usage: checkpoint_logits CHECKPOINT_DIR JOB STEP < input.json
//
// Runs the forward of the stored model on the tokens of {"tokens": [[…]], "segments": [[…]]} and prints the scores
// over the vocabulary of every token, for a test that compares them with those of another implementation.
#include <iostream>
#include <iterator>
#include <string>

#include "launcher/job/checkpoint_choice.h"
#include "launcher/job/checkpoint_store.h"
#include "launcher/job/stored_model.h"
#include "storage/json/json.h"
#include "storage/json/json_reader.h"
#include "trainer/checkpoints/restore.h"
#include "trainer/torch/block.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

using storage::Json;
using storage::JsonReader;

// What the heads keep, in their order: the last norm's output, and what the next-sentence scores are made of.
constexpr std::size_t kGptNormed = 3;
constexpr std::size_t kBertNormed = 5;
constexpr std::size_t kBertPooled = 8;

at::Tensor read_matrix(const JsonReader& reader) {
  std::vector<std::int64_t> numbers;
  const auto rows = reader.elements();
  for (const JsonReader& row : *rows) {
    const auto columns = row.elements();
    for (const JsonReader& number : *columns) numbers.push_back(*number.integer());
  }
  return at::tensor(numbers, at::kLong).view({static_cast<std::int64_t>(rows->size()), -1});
}

BatchTensors read_batch(const Json& input) {
  const JsonReader reader(input);
  BatchTensors batch;
  batch.tokens = read_matrix(*reader.member("tokens"));
  batch.labels = batch.tokens.view(-1);
  batch.segments = read_matrix(*reader.member("segments"));
  batch.follows = at::zeros({batch.tokens.size(0)}, at::kLong);
  batch.masked = at::arange(batch.labels.numel(), at::kLong);
  return batch;
}

Json to_json(const at::Tensor& tensor) {
  Json json = Json::array();
  const at::Tensor flat = tensor.contiguous().view(-1);
  for (std::int64_t i = 0; i < flat.numel(); ++i) json.append(static_cast<double>(flat.data_ptr<float>()[i]));
  return json;
}

std::vector<Tensors> load_weights(launcher::CheckpointStore& store, const storage::Manifest& manifest,
                                  const ModelConfig& model, StageState& state) {
  const StageLayout layout = layout_of(model, 0, model.blocks());
  state.weights = allocate_zeroed(static_cast<std::size_t>(layout.elements) * sizeof(float));
  const Status restored = restore_stage(store.files(), manifest, model, Accumulation::kFloat, layout, state, 1);
  EVERSTEP_CHECK(restored.ok(), restored.error().line());
  std::vector<Tensors> blocks(static_cast<std::size_t>(model.blocks()));
  for (const StageLayout::Entry& entry : layout.entries) {
    float* data = state.weights.as<float>().data() + entry.offset;
    blocks[static_cast<std::size_t>(entry.block)].push_back(at::from_blob(data, entry.parameter.shape, at::kFloat));
  }
  return blocks;
}

Json logits(const ModelConfig& model, const std::vector<Tensors>& weights, const BatchTensors& batch) {
  const auto blocks = make_blocks(model, 0, model.blocks());
  at::Tensor activations;
  Tensors saved;
  for (int block = 0; block < model.blocks(); ++block) {
    const BlockCall call{model, block, batch, Position{0}, false};
    const auto index = static_cast<std::size_t>(block);
    activations = blocks[index]->forward(weights[index], activations, call, saved);
  }
  const Tensors& head = weights.back();
  Json json = Json::object();
  if (model.shape.family == scheduler::ModelFamily::kGpt) {
    return json.set("logits", to_json(saved[kGptNormed].mm(head[2].t())));
  }
  json.set("logits", to_json(at::addmm(head[0], saved[kBertNormed], head[5].t())));
  if (model.next_sentence) json.set("next_sentence", to_json(at::addmm(head[9], saved[kBertPooled], head[8].t())));
  return json;
}

int run(const std::string& directory, const std::string& job, const std::string& step) {
  prepare_torch(1);
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto input = storage::parse_json(text);
  const auto store = launcher::open_checkpoint_store({directory, job, ""}, launcher::StoreAccess::kExisting);
  const auto entry = launcher::choose_checkpoint(*(*store)->catalog().list(), step);
  const auto model = launcher::stored_model(entry->manifest.configuration);
  StageState state;
  const std::vector<Tensors> weights = load_weights(**store, entry->manifest, *model, state);
  std::cout << storage::to_text(logits(*model, weights, read_batch(*input)), 0) << "\n";
  return 0;
}

}  // namespace
}  // namespace everstep::trainer

int main(int argc, char** argv) {
  EVERSTEP_CHECK(argc == 4, "expected CHECKPOINT_DIR JOB STEP");
  return everstep::trainer::run(argv[1], argv[2], argv[3]);
}
