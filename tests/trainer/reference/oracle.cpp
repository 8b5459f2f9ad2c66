#include "tests/trainer/reference/oracle.h"

#include <algorithm>
#include <bit>

#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

scheduler::Plan plan_of(const TrainOptions& options) {
  scheduler::Plan plan;
  plan.kind = options.schedule.kind;
  plan.depth = options.schedule.depth;
  plan.pipelines = placement_of(options.schedule).value().pipelines();
  plan.lag = options.schedule.lag;
  plan.provisional = options.schedule.provisional;
  plan.width = options.schedule.width;
  plan.window = options.schedule.window;
  plan.preload = options.schedule.preload;
  plan.cuts = options.cuts;
  return plan;
}

float float_of(std::uint16_t bf16) { return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16); }

OracleRun run_reference(TrainOptions options, const DataSource& data, const std::set<std::int64_t>& lost_windows) {
  prepare_torch(1);  // bits repeat only with a fixed number of threads
  options.accumulation = Accumulation::kFixedPoint;
  ReferenceRun reference(options, data, reference_hooks(options.model));
  const std::int64_t every = options.evaluate_every;
  const std::int64_t evaluated = std::min(options.evaluate_minibatches, data.validation_minibatches());
  OracleRun run;
  for (std::int64_t window = 0; window < options.steps; ++window) {
    HistoryEntry entry;
    entry.window = window;
    entry.end = options.schedule.window;
    entry.plan = plan_of(options);
    entry.flushed = window == 0 || (every > 0 && window % every == 0);
    entry.provisional = options.schedule.provisional > 0 && !entry.flushed;
    entry.skipped = lost_windows.contains(window);
    run.steps.push_back(*reference.run(entry).value().update);
    const bool evaluates = every > 0 && ((window + 1) % every == 0 || window + 1 == options.steps);
    if (evaluates) run.validation_losses.push_back(reference.evaluate(evaluated).value());
  }
  run.weights = weights_of(reference, options.model);
  return run;
}

}  // namespace

TrainHooks reference_hooks(const ModelConfig& model) {
  TrainHooks hooks;
  hooks.make_stage = make_torch_stage;
  hooks.initialise_weights = [model](const StageLayout& layout, const Buffer& weights) {
    initialise_weights(model, layout, weights);
  };
  hooks.initialise_master = [model](const StageLayout& layout, const Buffer& master) {
    initialise_master(model, layout, master);
  };
  return hooks;
}

NamedWeights weights_of(const ReferenceRun& run, const ModelConfig& model) {
  NamedWeights weights;
  for (int block = 0; block < run.blocks(); ++block) {
    const Buffer buffer = run.state(block).weights;
    for (const StageLayout::Entry& entry : run.layout(block).entries) {
      std::vector<float>& values = weights[entry.parameter.name];
      for (std::int64_t i = entry.offset; i < entry.offset + entry.parameter.elements(); ++i) {
        const bool is_bf16 = model.precision == Precision::kBf16;
        values.push_back(is_bf16 ? float_of(buffer.as<std::uint16_t>()[i]) : buffer.as<float>()[i]);
      }
    }
  }
  return weights;
}

OracleRun run_oracle(const TrainOptions& options, const DataSource& data, const std::set<std::int64_t>& lost_windows) {
  return run_reference(options, data, lost_windows);
}

OracleRun run_plain_training(const TrainOptions& options, const DataSource& data) {
  TrainOptions plain = options;
  plain.schedule.kind = scheduler::ScheduleKind::kOneFOneB;
  plain.schedule.depth = 1;
  plain.schedule.width = 1;
  plain.schedule.provisional = 0;
  plain.cuts = {0, plain.model.blocks()};
  return run_reference(std::move(plain), data, {});
}

}  // namespace everstep::trainer
