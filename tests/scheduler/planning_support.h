#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "scheduler/planner.h"
#include "scheduler/profile.h"

namespace everstep::scheduler {

inline std::vector<WorkerInfo> crew(int count, int per_host = 1) {
  std::vector<WorkerInfo> workers;
  for (int i = 0; i < count; ++i) {
    workers.push_back({WorkerId{{7, static_cast<std::uint64_t>(i)}}, "host-" + std::to_string(i / per_host)});
  }
  return workers;
}

inline PlanOptions asked_for(ScheduleKind kind, int window) {
  PlanOptions options;
  options.kind = kind;
  options.window = window;
  return options;
}

// Blocks of `parameters` each that take `forward` and twice that to go back, and keep nothing.
inline ModelProfile even_profile(int blocks, Tick forward = 1'000'000, std::int64_t parameters = 1'000'000) {
  ModelProfile profile;
  profile.name = "even";
  for (int i = 0; i < blocks; ++i) profile.blocks.push_back({"block", parameters, 0, 0, forward, 2 * forward});
  return profile;
}

// The same, with half of each backward for the weights.
inline ModelProfile split_profile(ModelProfile profile) {
  for (BlockProfile& block : profile.blocks) block.weights = block.backward / 2;
  return profile;
}

inline ModelProfile random_profile(int blocks, std::uint64_t seed) {
  const RandomStream random(seed, 1);
  ModelProfile profile = even_profile(blocks);
  for (int i = 0; i < blocks; ++i) {
    BlockProfile& block = profile.blocks[i];
    const std::uint64_t draw = 4 * static_cast<std::uint64_t>(i);
    block.forward = 100'000 + static_cast<Tick>(random.below(draw, 3'000'000));
    block.backward = block.forward + static_cast<Tick>(random.below(draw + 1, 4'000'000));
    block.parameters = static_cast<std::int64_t>(random.below(draw + 2, 50'000'000));
    block.activation_bytes = static_cast<std::int64_t>(random.below(draw + 3, 100'000'000));
    block.output_bytes = 1'000'000;
  }
  return profile;
}

// Calls `visit` with every way to cut `blocks` into `stages`.
inline void for_all_cuts(int blocks, int stages, const std::function<void(const Cuts&)>& visit) {
  Cuts cuts{0};
  const std::function<void()> extend = [&] {
    const int placed = static_cast<int>(cuts.size()) - 1;
    if (placed == stages - 1) {
      cuts.push_back(blocks);
      visit(cuts);
      cuts.pop_back();
      return;
    }
    for (int end = cuts.back() + 1; end <= blocks - (stages - 1 - placed); ++end) {
      cuts.push_back(end);
      extend();
      cuts.pop_back();
    }
  };
  extend();
}

}  // namespace everstep::scheduler
