// One worker alone on one core: forward, backward and update of a small GPT (8 blocks, hidden 256, sequences of 128,
// vocabulary 256, 4 minibatches of 4 per update). Prints one JSON line with tokens/s, like
// bench/peers/torch_pipeline.py
// --stages 1, which does the same in plain PyTorch. Options: --steps=N (10) --reproducible.

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <string_view>

#include "base/random.h"
#include "trainer/optimizer.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

constexpr std::int64_t kWindow = 4;
constexpr int kWarmUpSteps = 2;

ModelConfig benchmark_model() {
  ModelConfig model;
  model.shape = {"benchmark", scheduler::ModelFamily::kGpt, 8, 256, 8, 128, 256};
  model.dropout = 0;
  model.minibatch = 4;
  return model;
}

class RandomTokens final : public DataSource {
 public:
  explicit RandomTokens(const ModelConfig& model) : model_(model) {}

  Result<Minibatch> training(Position position) const override {
    const RandomStream random{1, static_cast<std::uint64_t>(position.value)};
    Minibatch batch{model_.minibatch, model_.shape.sequence, {}, {}, {}, {}, {}};
    const auto vocabulary = static_cast<std::uint64_t>(model_.shape.vocabulary);
    for (std::int64_t i = 0; i < model_.tokens_per_minibatch(); ++i) {
      batch.tokens.push_back(static_cast<std::int64_t>(random.below(2 * i, vocabulary)));
      batch.labels.push_back(static_cast<std::int64_t>(random.below(2 * i + 1, vocabulary)));
    }
    return batch;
  }
  Result<Minibatch> validation(std::int64_t index) const override { return training(Position{index}); }
  std::int64_t validation_minibatches() const override { return 1; }

 private:
  ModelConfig model_;
};

class OneWorker {
 public:
  OneWorker(const ModelConfig& model, Accumulation accumulation)
      : data_(model),
        request_{model, layout_of(model, 0, model.blocks()), {}, accumulation, kWindow, &data_},
        optimizer_(request_.layout, model.precision, accumulation, {}, {}) {
    const auto elements = static_cast<std::size_t>(request_.layout.elements);
    const Buffer gradients = allocate_zeroed(elements * (accumulation == Accumulation::kFixedPoint ? 8 : 4));
    request_.memory = {allocate_zeroed(elements * model.weight_bytes()), {gradients, gradients}};
    initialise_weights(model, request_.layout, request_.memory.weights);
    stage_ = make_torch_stage(request_);
  }

  // The mean loss of the window.
  double step() {
    double loss = 0;
    for (std::int64_t i = 0; i < kWindow; ++i) {
      const Position position{kWindow * steps_ + i};
      loss += stage_->forward(position, {}).value().loss / static_cast<double>(kWindow);
      EVERSTEP_CHECK(stage_->backward(position, {}, 0).ok(), "a backward failed");
    }
    optimizer_.step({1e-4, 1.0, ++steps_}, request_.memory.gradients[0], request_.memory.weights);
    return loss;
  }

 private:
  RandomTokens data_;
  StageRequest request_;
  StageOptimizer optimizer_;
  std::unique_ptr<StageCompute> stage_;
  std::int64_t steps_ = 0;
};

void run(int steps, Accumulation accumulation) {
  prepare_torch(1);
  const ModelConfig model = benchmark_model();
  OneWorker worker(model, accumulation);
  for (int i = 0; i < kWarmUpSteps; ++i) worker.step();
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = worker.step();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto tokens = static_cast<double>(steps * kWindow * model.tokens_per_minibatch());
  std::cout << R"({"peer": "everstep", "kernels": ")" << cpu_capability() << R"(", "reproducible": )"
            << (accumulation == Accumulation::kFixedPoint ? "true" : "false") << R"(, "loss": )" << loss
            << R"(, "tokens_per_s": )" << tokens / seconds.count() << R"(, "tokens_per_cpu_s": )"
            << tokens / cpu_seconds << "}\n";
}

}  // namespace
}  // namespace everstep::trainer

int main(int argc, char** argv) {
  int steps = 10;
  auto accumulation = everstep::trainer::Accumulation::kFloat;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option.starts_with("--steps=")) {
      steps = std::atoi(argv[i] + 8);
    } else if (option == "--reproducible") {
      accumulation = everstep::trainer::Accumulation::kFixedPoint;
    } else {
      std::cerr << "one_core: unknown option '" << option << "' (hint: --steps=N or --reproducible)\n";
      return 64;
    }
  }
  everstep::trainer::run(steps, accumulation);
}
