#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "trainer/model/stage_compute.h"

namespace everstep::trainer {

enum class StageOp : std::uint8_t { kForward, kBackwardInput, kBackwardWeights, kEvaluate };

// Is called for an op of a stage, and calls `run`, which is that op, once. `position` is the minibatch's.
using AroundOp = std::function<void(StageOp op, Position position, const std::function<void()>& run)>;

// The stage, each of whose ops runs inside a call of `around`.
std::unique_ptr<StageCompute> wrap_ops(std::unique_ptr<StageCompute> stage, AroundOp around);

}  // namespace everstep::trainer
