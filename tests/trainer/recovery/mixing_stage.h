#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "trainer/loop/train_loop.h"

namespace everstep::trainer {

// A model that costs nothing and forgets nothing: a few floats go through its blocks, and whatever reaches a block
// (input, position, tokens, the weights of the forward and those of the backward, the order of blocks) changes all that
// follows. Each block works for itself, so every cut gives the same bits. Its gradients are no derivatives.
std::unique_ptr<StageCompute> make_mixing_stage(const StageRequest& request);

// As above, but the gradients of these positions are not finite.
std::unique_ptr<StageCompute> make_poisoned_stage(const StageRequest& request, std::set<std::int64_t> positions);

// A model for it with so many blocks between the first and the last.
ModelConfig mixing_model(int layers);

// Initial weights and masters for it, and stages without poison.
void add_mixing_hooks(const ModelConfig& model, TrainHooks& hooks);

// Minibatches that nobody looks at: positions are data enough.
std::unique_ptr<DataSource> make_no_minibatches();

}  // namespace everstep::trainer
