#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/loop/train_loop.h"
#include "trainer/reference/reference_run.h"

// What the reference executor makes of a run that nobody disturbs.
namespace everstep::trainer {

// By the parameters' names. A bf16 weight is given as the float it stands for.
using NamedWeights = std::map<std::string, std::vector<float>>;

using OracleStep = ReferenceStep::Update;

struct OracleRun {
  std::vector<OracleStep> steps;
  std::vector<double> validation_losses;
  NamedWeights weights;
};

// What the reference executor needs to run on LibTorch in this process.
TrainHooks reference_hooks(const ModelConfig& model);

// The weights that the reference executor has now.
NamedWeights weights_of(const ReferenceRun& run, const ModelConfig& model);

// Trains as the plan in `options` would, with fixed-point sums always: each stage of each minibatch goes forward and
// backward with the versions of the weights that the plan's version table names. The gradients of `lost_windows` count
// as not finite.
OracleRun run_oracle(const TrainOptions& options, const DataSource& data,
                     const std::set<std::int64_t>& lost_windows = {});

// Trains without any pipeline: gradient accumulation, every pass of window w with the weights after w updates. Of the
// plan it looks at nothing but the window's size.
OracleRun run_plain_training(const TrainOptions& options, const DataSource& data);

}  // namespace everstep::trainer
