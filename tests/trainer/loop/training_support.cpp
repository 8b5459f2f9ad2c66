#include "tests/trainer/loop/training_support.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "trainer/data/open_data.h"

namespace everstep::trainer {

using scheduler::ModelFamily;

std::string name_of(const TestPlan& plan) {
  std::string kind(scheduler::to_string(plan.kind));
  std::replace(kind.begin(), kind.end(), '-', '_');
  std::string name =
      kind + "_D" + std::to_string(plan.depth) + "_W" + std::to_string(plan.width) + "_M" + std::to_string(plan.window);
  if (plan.provisional > 0) name += "_provisional" + std::to_string(plan.provisional);
  return is_clockwork(plan.kind) ? name + "_P" + std::to_string(plan.pipelines) + "_lag" + std::to_string(plan.lag)
                                 : name + "_preload" + std::to_string(plan.preload);
}

std::ostream& operator<<(std::ostream& out, const TestPlan& plan) { return out << name_of(plan); }

TrainOptions tiny_training(ModelFamily family, int layers) {
  TrainOptions options;
  options.model.shape = {"tiny", family, layers, 32, 2, 16, family == ModelFamily::kGpt ? 256 : 260};
  options.model.dropout = 0.1;
  options.model.next_sentence = family == ModelFamily::kBert;
  options.model.minibatch = 2;
  options.model.seed = 3;
  options.accumulation = Accumulation::kFixedPoint;
  options.adam.clip_norm = 0.25;
  options.learning_rate = {
      .peak = 3e-3, .floor = 3e-4, .decay = Decay::kCosine, .warmup_samples = 30, .total_samples = 300};
  options.steps = 4;
  options.lineage = 0x5EED;
  options.peer_timeout = std::chrono::seconds(60);
  return options;
}

TrainOptions under_plan(TrainOptions options, const TestPlan& plan) {
  options.schedule.kind = plan.kind;
  options.schedule.depth = plan.depth;
  options.schedule.width = plan.width;
  options.schedule.window = plan.window;
  options.schedule.preload = plan.preload;
  options.schedule.pipelines = plan.pipelines;
  options.schedule.lag = plan.lag;
  options.schedule.provisional = plan.provisional;
  const int stages = placement_of(options.schedule).value().stages();
  options.cuts.clear();
  for (int stage = 0; stage <= stages; ++stage) options.cuts.push_back(stage * options.model.blocks() / stages);
  return options;
}

std::unique_ptr<DataSource> shipped_corpus(const ModelConfig& model) {
  return open_data({.path = EVERSTEP_CORPUS}, model).value();
}

}  // namespace everstep::trainer
