#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/train_loop.h"

// The reference for the executor: one process, one thread, minibatch after minibatch, written to be believed at first
// sight. It shares the model (blocks, parameters, data) and the version table with the executor, and nothing else: no
// transport, no lists of ops, no buffers by parity, no reduction, no vector code. Sums are fixed-point always.
namespace everstep::trainer {

// By the parameters' names. A bf16 weight is given as the float it stands for.
using NamedWeights = std::map<std::string, std::vector<float>>;

struct OracleStep {
  double loss = 0;
  double gradient_norm = 0;
  bool skipped = false;
};

struct OracleRun {
  std::vector<OracleStep> steps;
  std::vector<double> validation_losses;
  NamedWeights weights;
};

// Trains as the plan in `options` would: each stage of each minibatch goes forward and backward with the versions of
// the weights that the plan's version table names. The gradients of `lost_windows` count as not finite.
OracleRun run_oracle(const TrainOptions& options, const DataSource& data,
                     const std::set<std::int64_t>& lost_windows = {});

// Trains without any pipeline: gradient accumulation, every pass of window w with the weights after w updates. Of the
// plan it looks at nothing but the window's size.
OracleRun run_plain_training(const TrainOptions& options, const DataSource& data);

}  // namespace everstep::trainer
