#include "tests/trainer/torch/test_model.h"

#include "base/random.h"
#include "trainer/torch/gradient_sinks.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

ModelConfig small_model(scheduler::ModelFamily family) {
  ModelConfig config;
  config.shape = {"small", family, 3, 24, 4, 10, 37};
  config.dropout = 0;
  config.minibatch = 5;
  config.seed = 7;
  return config;
}

Tensors copies(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

}  // namespace

ModelConfig small_gpt() { return small_model(scheduler::ModelFamily::kGpt); }
ModelConfig small_bert() { return small_model(scheduler::ModelFamily::kBert); }

Minibatch RandomSamples::sample(std::int64_t number) const {
  const RandomStream stream{99, static_cast<std::uint64_t>(number)};
  const bool bert = config_.shape.family == scheduler::ModelFamily::kBert;
  Minibatch batch;
  batch.sequences = config_.minibatch;
  batch.length = config_.shape.sequence;
  std::uint64_t draw = 0;
  const auto below = [&](int bound) { return static_cast<std::int64_t>(stream.below(draw++, bound)); };
  for (int row = 0; row < batch.sequences; ++row) {
    const bool full = !padded_ || row % 2 == 0;
    const int used = full ? batch.length : static_cast<int>(2 + below(batch.length - 2));
    for (int i = 0; i < batch.length; ++i) {
      batch.tokens.push_back(i < used ? below(config_.shape.vocabulary) : 0);
      const bool labelled = !bert || (i < used && (row * batch.length + i) % 20 < 3);
      batch.labels.push_back(labelled ? below(config_.shape.vocabulary) : kIgnoredLabel);
      if (bert) batch.segments.push_back(i < used / 2 ? 0 : 1);
    }
    if (!bert) continue;
    batch.used.push_back(used);
    batch.follows.push_back(below(2));
  }
  return batch;
}

Tensors noisy_weights(const ModelConfig& config, int block) {
  Tensors weights;
  int index = 0;
  for (ParameterSpec parameter : parameters_of(config, block)) {
    const at::Tensor value = initial_value(config, block, index, parameter);
    const bool constant = parameter.init != ParameterSpec::Init::kNormal;
    parameter.init = ParameterSpec::Init::kNormal;
    parameter.deviation = 0.2;
    const at::Tensor noise = initial_value(config, block, 1000 + index++, parameter);
    weights.push_back((constant ? value + noise : value * 10).to(scalar_type(config)));
  }
  return weights;
}

CutModel::CutModel(const ModelConfig& config, std::vector<int> cuts, Accumulation accumulation, const DataSource& data,
                   std::int64_t window) {
  prepare_torch(1);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    StageRequest request{config, layout_of(config, cuts[i], cuts[i + 1]), {}, accumulation, window, &data};
    const auto elements = static_cast<std::size_t>(request.layout.elements);
    const std::size_t gradient_bytes = elements * (accumulation == Accumulation::kFixedPoint ? 8 : 4);
    request.memory.weights = allocate_zeroed(elements * config.weight_bytes());
    request.memory.gradients = {allocate_zeroed(gradient_bytes), allocate_zeroed(gradient_bytes)};
    initialise_weights(config, request.layout, request.memory.weights);
    stages_.push_back({request, make_torch_stage(request)});
  }
}

double CutModel::forward(Position position) {
  StageCompute::Output output;
  for (Stage& stage : stages_) output = stage.compute->forward(position, output.tensor).value();
  return output.loss.value();
}

void CutModel::backward(Position position, int parity) {
  backward_input(position, parity);
  backward_weights(position, parity);
}

void CutModel::backward_input(Position position, int parity) {
  Buffer gradient;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    gradient = stage->compute->backward_input(position, gradient, parity).value();
  }
}

void CutModel::backward_weights(Position position, int parity) {
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    const Status added = stage->compute->backward_weights(position, parity);
    EVERSTEP_CHECK(added.ok(), "a backward that fails");
  }
}

double CutModel::evaluate(std::int64_t index) {
  StageCompute::Output output;
  for (Stage& stage : stages_) output = stage.compute->evaluate(index, output.tensor).value();
  return output.loss.value();
}

Tensors CutModel::gradients(int parity) const {
  Tensors all;
  for (const Stage& stage : stages_) {
    const auto type = stage.request.accumulation == Accumulation::kFixedPoint ? at::kLong : at::kFloat;
    const Tensors views = copies(parameter_views(stage.request.layout, stage.request.memory.gradients[parity], type));
    all.insert(all.end(), views.begin(), views.end());
  }
  return all;
}

Tensors CutModel::weights() const {
  Tensors all;
  for (const Stage& stage : stages_) {
    const auto type = scalar_type(stage.request.model);
    const Tensors views = copies(parameter_views(stage.request.layout, stage.request.memory.weights, type));
    all.insert(all.end(), views.begin(), views.end());
  }
  return all;
}

bool CutModel::take_overflow(int parity) {
  bool overflowed = false;
  for (Stage& stage : stages_) overflowed |= stage.compute->take_overflow(parity).value();
  return overflowed;
}

void CutModel::scale_weights(double factor) {
  for (const Stage& stage : stages_) {
    const auto type = scalar_type(stage.request.model);
    for (at::Tensor& view : parameter_views(stage.request.layout, stage.request.memory.weights, type))
      view.mul_(factor);
  }
}

}  // namespace everstep::trainer
