#pragma once

#include <string>
#include <vector>

#include "tests/trainer/loop/worker_run.h"

namespace everstep::trainer {

// Whether all workers did what the reference did, bit for bit: every weight of every replica, every loss, norm,
// skipped window and validation loss. Empty if so, else the first difference in words.
std::string difference_from(const OracleRun& reference, const Result<std::vector<WorkerRun>>& runs);

// The same for two runs of the executor.
std::string difference_between(const Result<std::vector<WorkerRun>>& expected,
                               const Result<std::vector<WorkerRun>>& runs);

// Whether the replicas of each stage hold equal bits.
std::string difference_among_replicas(const Result<std::vector<WorkerRun>>& runs);

// |a − b| / |b − start| over all weights: how far two runs have drifted apart, of the way they have gone.
double relative_distance(const NamedWeights& a, const NamedWeights& b, const NamedWeights& start);

// All stages' weights, each from any worker that has them.
NamedWeights joined_weights(const std::vector<WorkerRun>& runs);

}  // namespace everstep::trainer
