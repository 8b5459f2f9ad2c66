#include "tests/trainer/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <ATen/ATen.h>

#include "scheduler/versions.h"
#include "tests/trainer/oracle/reference_optimizer.h"
#include "trainer/torch/block.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

// The weights that the two passes of a minibatch through a block use.
struct UsedVersions {
  Version forward;
  Version backward;
};
using VersionRule = std::function<UsedVersions(Position position, int block)>;

// Adds one block's gradients to the window's sums, element by element.
class SumsOfBlock final : public GradientSink {
 public:
  SumsOfBlock(std::vector<ReferenceParameter>& parameters, int block, bool& lost)
      : parameters_(parameters), block_(block), lost_(lost) {}

  void add(int parameter, const at::Tensor& gradient) override { add_at(parameter, 0, gradient); }

  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    add_at(parameter, 0, left.mm(right));
  }

  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    for (std::int64_t i = 0; i < index.numel(); ++i) {
      add_at(parameter, index[i].item<std::int64_t>() * rows.size(1), rows[i]);
    }
  }

 private:
  void add_at(int parameter, std::int64_t offset, const at::Tensor& gradient) {
    const at::Tensor values = gradient.to(at::kFloat).contiguous();
    const float* const value = values.const_data_ptr<float>();
    std::vector<std::int64_t>& sums = sum_of(parameter);
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      if (!add_to_fixed_point(sums[offset + i], value[i])) lost_ = true;
    }
  }

  std::vector<std::int64_t>& sum_of(int index) {
    return std::find_if(parameters_.begin(), parameters_.end(),
                        [&](const ReferenceParameter& each) { return each.block == block_ && each.index == index; })
        ->gradient;
  }

  std::vector<ReferenceParameter>& parameters_;
  int block_;
  bool& lost_;
};

class Reference {
 public:
  Reference(const TrainOptions& options, const DataSource& data, std::set<std::int64_t> lost_windows)
      : options_(options),
        model_(options.model),
        data_(data),
        lost_windows_(std::move(lost_windows)),
        blocks_(make_blocks(model_, 0, model_.blocks())) {
    for (int block = 0; block < model_.blocks(); ++block) {
      int index = 0;
      for (const ParameterSpec& spec : parameters_of(model_, block)) {
        const at::Tensor value = initial_value(model_, block, index, spec).contiguous();
        const float* const first = value.const_data_ptr<float>();
        const std::vector<float> zeros(value.numel(), 0.0F);
        parameters_.push_back({spec, block, index++, {first, first + value.numel()}, zeros, zeros, {}});
      }
    }
    forget_gradients(parameters_);
    weights_[Version{0}] = weights_now();
  }

  // All minibatches of a window, then its update, which makes version window + 1.
  void train_window(std::int64_t window, const VersionRule& versions_of) {
    const std::int64_t minibatches = options_.schedule.window;
    OracleStep step;
    bool lost = lost_windows_.contains(window);
    for (std::int64_t i = 0; i < minibatches; ++i) {
      step.loss += train_minibatch({window * minibatches + i}, versions_of, lost);
    }
    step.loss /= static_cast<double>(minibatches);
    sum_tied_gradients(parameters_);
    step.gradient_norm = global_gradient_norm(parameters_);
    step.skipped = lost || !std::isfinite(step.loss) || !std::isfinite(step.gradient_norm);
    if (!step.skipped) {
      const double rate =
          reference_learning_rate(options_.learning_rate, (window + 1) * minibatches * model_.minibatch);
      adamw_step(parameters_, options_.adam, rate, step.gradient_norm, ++applied_);
    }
    forget_gradients(parameters_);
    weights_[Version{window + 1}] = weights_now();
    weights_.erase(Version{window - 1});
    run_.steps.push_back(step);
  }

  // The mean loss over the first minibatches of the validation split, without dropout.
  void evaluate() {
    const std::int64_t minibatches = std::min(options_.evaluate_minibatches, data_.validation_minibatches());
    const std::vector<Tensors>& weights = weights_.rbegin()->second;
    double sum = 0;
    for (std::int64_t i = 0; i < minibatches; ++i) {
      const BatchTensors batch = to_tensors(data_.validation(i).value(), model_);
      at::Tensor activation;
      for (int block = 0; block < model_.blocks(); ++block) {
        Tensors unused;
        activation = blocks_[block]->forward(weights[block], activation, {model_, block, batch, {}, false}, unused);
      }
      sum += activation.item<double>();
    }
    run_.validation_losses.push_back(sum / static_cast<double>(minibatches));
  }

  OracleRun take_run() {
    for (const ReferenceParameter& parameter : parameters_) {
      const at::Tensor weight = weights_.rbegin()->second[parameter.block][parameter.index].to(at::kFloat);
      const float* const first = weight.const_data_ptr<float>();
      run_.weights[parameter.spec.name] = {first, first + weight.numel()};
    }
    return std::move(run_);
  }

 private:
  double train_minibatch(Position position, const VersionRule& versions_of, bool& lost) {
    const BatchTensors batch = to_tensors(data_.training(position).value(), model_);
    std::vector<at::Tensor> inputs(model_.blocks());
    std::vector<Tensors> saved(model_.blocks());
    at::Tensor activation;
    for (int block = 0; block < model_.blocks(); ++block) {
      const Tensors& weights = weights_.at(versions_of(position, block).forward)[block];
      inputs[block] = activation;
      activation = blocks_[block]->forward(weights, activation, {model_, block, batch, position, true}, saved[block]);
    }
    const auto loss = activation.item<double>();

    at::Tensor gradient = at::scalar_tensor(1.0 / options_.schedule.window, at::kDouble);
    for (int block = model_.blocks() - 1; block >= 0; --block) {
      const Tensors& weights = weights_.at(versions_of(position, block).backward)[block];
      const BlockCall call{model_, block, batch, position, true};
      if (model_.recompute) {
        saved[block].clear();
        blocks_[block]->forward(weights, inputs[block], call, saved[block]);
      }
      SumsOfBlock sums(parameters_, block, lost);
      gradient = blocks_[block]->backward(weights, saved[block], gradient, call, sums);
    }
    return loss;
  }

  // Per block, in the model's precision.
  std::vector<Tensors> weights_now() const {
    std::vector<Tensors> weights(model_.blocks());
    for (const ReferenceParameter& parameter : parameters_) {
      const at::Tensor value = at::tensor(parameter.value, at::kFloat).view(parameter.spec.shape);
      weights[parameter.block].push_back(value.to(scalar_type(model_)));
    }
    return weights;
  }

  const TrainOptions& options_;
  const ModelConfig& model_;
  const DataSource& data_;
  std::set<std::int64_t> lost_windows_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<ReferenceParameter> parameters_;       // in the model's order
  std::map<Version, std::vector<Tensors>> weights_;  // the last two versions
  std::int64_t applied_ = 0;
  OracleRun run_;
};

// What the version table of a plan says about the windows between two drains.
VersionRule versions_under_plan(const TrainOptions& options, std::int64_t first_window, std::int64_t windows) {
  scheduler::ScheduleRequest request = options.schedule;
  request.first_window = first_window;
  request.windows = static_cast<int>(windows);
  const scheduler::Schedule schedule = scheduler::make_schedule(request).value();
  const scheduler::VersionTable table = scheduler::trace_versions(schedule);
  std::map<std::pair<Position, int>, UsedVersions> used;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const scheduler::Op& op = schedule.workers[worker][i];
      if (!is_compute(op)) continue;
      for (int block = options.cuts[op.stage]; block < options.cuts[op.stage + 1]; ++block) {
        UsedVersions& versions = used[{schedule.position_of(worker, op), block}];
        const bool forward = op.kind == scheduler::OpKind::kForward;
        (forward ? versions.forward : versions.backward) = table.seen[worker][i];
      }
    }
  }
  return [used = std::move(used), stash = options.stash](Position position, int block) {
    const UsedVersions& versions = used.at({position, block});
    return stash ? UsedVersions{versions.forward, versions.forward} : versions;
  };
}

OracleRun run_reference(const TrainOptions& options, const DataSource& data, std::set<std::int64_t> lost_windows,
                        const std::function<VersionRule(std::int64_t first_window, std::int64_t windows)>& rule_of) {
  prepare_torch(1);  // bits repeat only with a fixed number of threads
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  Reference reference(options, data, std::move(lost_windows));
  const std::int64_t between_drains = options.evaluate_every > 0 ? options.evaluate_every : options.steps;
  for (std::int64_t first = 0; first < options.steps; first += between_drains) {
    const std::int64_t end = std::min(first + between_drains, options.steps);
    const VersionRule versions_of = rule_of(first, end - first);
    for (std::int64_t window = first; window < end; ++window) reference.train_window(window, versions_of);
    if (options.evaluate_every > 0) reference.evaluate();
  }
  return reference.take_run();
}

}  // namespace

OracleRun run_oracle(const TrainOptions& options, const DataSource& data, const std::set<std::int64_t>& lost_windows) {
  return run_reference(options, data, lost_windows, [&](std::int64_t first_window, std::int64_t windows) {
    return versions_under_plan(options, first_window, windows);
  });
}

OracleRun run_plain_training(const TrainOptions& options, const DataSource& data) {
  return run_reference(options, data, {}, [&](std::int64_t, std::int64_t) -> VersionRule {
    return [&](Position position, int) {
      const Version version{position.value / options.schedule.window};
      return UsedVersions{version, version};
    };
  });
}

}  // namespace everstep::trainer
