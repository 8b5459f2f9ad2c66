#include "scheduler/partition.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace everstep::scheduler {
namespace {

// Fills stages from the front up to `limit`, leaving at least one block for each later stage.
Cuts fill_up_to(const std::vector<std::int64_t>& weights, int stages, std::int64_t limit) {
  const int blocks = static_cast<int>(weights.size());
  Cuts cuts{0};
  for (int stage = 0; stage < stages; ++stage) {
    int end = cuts.back() + 1;
    std::int64_t sum = weights[end - 1];
    while (end < blocks - (stages - 1 - stage) && sum + weights[end] <= limit) sum += weights[end++];
    cuts.push_back(end);
  }
  return cuts;
}

// The smallest largest stage, found by bisection: weights are integers.
Cuts smallest_maximum(const std::vector<std::int64_t>& weights, int stages) {
  std::int64_t low = *std::max_element(weights.begin(), weights.end());
  std::int64_t high = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fill_up_to(weights, stages, middle).back() == std::ssize(weights)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return fill_up_to(weights, stages, low);
}

// What a round of D minibatches costs the busiest device: its share of the work, and the bubble that several pipelines
// leave where backwards are longer than forwards. Sums of squares break ties in favour of even stages.
struct RoundEstimate {
  Tick round = 0;
  double unevenness = 0;

  bool operator<(const RoundEstimate& other) const {
    return std::tuple(round, unevenness) < std::tuple(other.round, other.unevenness);
  }
};

class RoundModel {
 public:
  RoundModel(const ModelProfile& profile, const Placement& placement)
      : placement_(placement), forward_{0}, backward_{0} {
    for (const BlockProfile& block : profile.blocks) {
      forward_.push_back(forward_.back() + block.forward);
      backward_.push_back(backward_.back() + block.backward);
    }
  }

  RoundEstimate estimate(const Cuts& cuts) const {
    std::vector<Tick> load(placement_.depth(), 0);  // per mirror group
    Tick bubble = 0;
    RoundEstimate result;
    for (int stage = 0; stage < placement_.stages(); ++stage) {
      const Tick forward = forward_[cuts[stage + 1]] - forward_[cuts[stage]];
      const Tick backward = backward_[cuts[stage + 1]] - backward_[cuts[stage]];
      load[placement_.mirror_group_of(placement_.owner_of(stage))] += forward + backward;
      if (placement_.pipelines() > 1) bubble = std::max(bubble, backward - forward);
      result.unevenness += static_cast<double>(forward + backward) * static_cast<double>(forward + backward);
    }
    const int minibatches_per_chunk = placement_.depth() / placement_.pipelines();
    result.round = minibatches_per_chunk * *std::max_element(load.begin(), load.end()) + bubble;
    return result;
  }

 private:
  const Placement& placement_;
  std::vector<Tick> forward_;  // prefix sums
  std::vector<Tick> backward_;
};

// Moves single blocks across single cuts while that helps.
Cuts refine(Cuts cuts, const RoundModel& model) {
  RoundEstimate best = model.estimate(cuts);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t cut = 1; cut + 1 < cuts.size(); ++cut) {
      for (const int step : {-1, 1}) {
        cuts[cut] += step;
        const bool stages_stay = cuts[cut - 1] < cuts[cut] && cuts[cut] < cuts[cut + 1];
        const RoundEstimate estimate = stages_stay ? model.estimate(cuts) : best;
        if (estimate < best) {
          best = estimate;
          moved = true;
        } else {
          cuts[cut] -= step;
        }
      }
    }
  }
  return cuts;
}

}  // namespace

Cuts partition_blocks(const ModelProfile& profile, const Placement& placement, Balance balance) {
  EVERSTEP_CHECK(std::ssize(profile.blocks) >= placement.stages(), "fewer blocks than stages");
  std::vector<std::int64_t> weights;
  for (const BlockProfile& block : profile.blocks) {
    const std::int64_t state = profile.weight_bytes + profile.gradient_bytes + profile.optimizer_bytes;
    weights.push_back(balance == Balance::kTime
                          ? block.forward + block.backward
                          : block.parameters * state + placement.depth() * block.activation_bytes);
  }
  const Cuts cuts = smallest_maximum(weights, placement.stages());
  return balance == Balance::kTime ? refine(cuts, RoundModel(profile, placement)) : cuts;
}

}  // namespace everstep::scheduler
