#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tick.h"
#include "scheduler/placement.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// What one block (embedding, transformer block, head) costs for one minibatch.
struct BlockProfile {
  std::string name;
  std::int64_t parameters = 0;
  std::int64_t activation_bytes = 0;  // kept from forward to backward
  std::int64_t output_bytes = 0;      // handed to the next block
  Tick forward = 0;
  Tick backward = 0;
  Tick weights = 0;                // the part of it that computes gradients of weights; 0 if it cannot be put off
  std::int64_t working_bytes = 0;  // the most that it needs besides while it computes, there or back

  bool operator==(const BlockProfile&) const = default;
};

struct ModelProfile {
  std::string name;
  std::vector<BlockProfile> blocks;
  std::int64_t tokens_per_minibatch = 0;  // 0 = unknown
  // Per parameter. bf16 with an fp32 master, and fp32 gradients, unless told otherwise.
  std::int64_t weight_bytes = 2;
  std::int64_t gradient_bytes = 4;
  std::int64_t optimizer_bytes = 12;

  bool operator==(const ModelProfile&) const = default;
};

// What a minibatch takes a worker at all its stages of a pipeline, whatever blocks these have.
struct StageTimes {
  Tick forward = 1;
  Tick backward = 2;  // all of it
  Tick weights = 1;   // the part of it for the gradients of weights

  bool operator==(const StageTimes&) const = default;
};

// What the workers are made of.
struct Hardware {
  std::int64_t memory_bytes = std::int64_t{40} << 30;        // per worker, for training
  std::int64_t link_bytes_per_second = 12'500'000'000;       // between any two workers: 100 Gbit/s
  Tick link_latency = 20'000;                                // 20 µs
  std::int64_t sum_bytes_per_second = 0;                     // of sums and new weights on a link; 0: as all else
  std::int64_t memory_bytes_per_second = 1'000'000'000'000;  // what an optimizer step is bound by
  std::optional<StageTimes> stage_times{};                   // of workers that only wait; instead of the profile's
};

// Refuses profiles that no plan can be made for, naming the block and the field.
Status check(const ModelProfile& profile);
Status check(const Hardware& hardware);

// Cuts: stage s is blocks [cuts[s], cuts[s + 1]).
using Cuts = std::vector<int>;

// The sums over blocks [begin, end): times, activations, and bytes of state; and the most that one of them needs while
// it computes. Nothing that depends on a placement.
StageCost stage_cost(const ModelProfile& profile, int begin, int end);

// Costs of the stages that the cuts make, on this hardware, under this placement, with `width` groups.
TimingModel timing_model(const ModelProfile& profile, const Hardware& hardware, const Placement& placement, int width,
                         const Cuts& cuts);

}  // namespace everstep::scheduler
