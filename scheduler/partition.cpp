#include "scheduler/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
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

// By stage: how slow the slowest device is that holds it.
Slowness slowness_of_stages(const Placement& placement, const Slowness& slowness) {
  Slowness stages;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    double slowest = 0;
    for (const int device : placement.replicas_of(stage)) slowest = std::max(slowest, slowness[device]);
    stages.push_back(slowest);
  }
  return stages;
}

// Cuts in which no stage takes longer than `limit`, if there are any. Filling from the front would not find out: a
// heavy block may be too much for a slow stage, and fit into the one before it.
std::optional<Cuts> cuts_within(const std::vector<std::int64_t>& weights, const Slowness& stages, std::int64_t limit) {
  const auto blocks = static_cast<int>(weights.size());
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t weight : weights) sums.push_back(sums.back() + weight);
  const auto fits = [&](std::size_t stage, int begin, int end) {
    return slowed(sums[end] - sums[begin], stages[stage]) <= limit;
  };
  // By stage: which blocks it can begin with.
  std::vector<std::vector<bool>> begins(stages.size() + 1, std::vector<bool>(blocks + 1));
  begins[0][0] = true;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    int marked = 0;
    int end = 0;
    for (int begin = 0; begin < blocks; ++begin) {
      if (!begins[stage][begin]) continue;
      end = std::max(end, begin);
      while (end < blocks && fits(stage, begin, end + 1)) ++end;
      for (marked = std::max(marked, begin); marked < end;) begins[stage + 1][++marked] = true;
    }
  }
  if (!begins.back()[blocks]) return std::nullopt;
  Cuts cuts(stages.size() + 1, blocks);
  for (std::size_t stage = stages.size() - 1; stage > 0; --stage) {
    int begin = cuts[stage + 1] - 1;
    while (!begins[stage][begin] || !fits(stage, begin, cuts[stage + 1])) --begin;
    cuts[stage] = begin;
  }
  cuts[0] = 0;
  return cuts;
}

// The smallest largest stage where stages are not equally fast.
Cuts smallest_maximum(const std::vector<std::int64_t>& weights, const Slowness& stages) {
  const std::int64_t all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  std::int64_t low = 0;
  std::int64_t high = slowed(all, *std::max_element(stages.begin(), stages.end()));
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    cuts_within(weights, stages, middle) ? high = middle : low = middle + 1;
  }
  return *cuts_within(weights, stages, low);
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
  RoundModel(const ModelProfile& profile, const Placement& placement, const Slowness& slowness)
      : placement_(placement),
        stages_(slowness.empty() ? Slowness{} : slowness_of_stages(placement, slowness)),
        forward_{0},
        backward_{0} {
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
      const Tick forward = slowed(forward_[cuts[stage + 1]] - forward_[cuts[stage]], stages_, stage);
      const Tick backward = slowed(backward_[cuts[stage + 1]] - backward_[cuts[stage]], stages_, stage);
      load[placement_.mirror_group_of(placement_.owner_of(stage))] += forward + backward;
      const bool leaves_a_bubble = placement_.pipelines() > 1 && !splits_backwards(placement_.kind());
      if (leaves_a_bubble) bubble = std::max(bubble, backward - forward);
      result.unevenness += static_cast<double>(forward + backward) * static_cast<double>(forward + backward);
    }
    const int minibatches_per_chunk = placement_.depth() / placement_.pipelines();
    result.round = minibatches_per_chunk * *std::max_element(load.begin(), load.end()) + bubble;
    return result;
  }

 private:
  const Placement& placement_;
  Slowness stages_;            // by stage; empty: all as usual
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

Cuts partition_blocks(const ModelProfile& profile, const Placement& placement, Balance balance,
                      const Slowness& slowness) {
  EVERSTEP_CHECK(std::ssize(profile.blocks) >= placement.stages(), "fewer blocks than stages");
  std::vector<std::int64_t> weights;
  for (const BlockProfile& block : profile.blocks) {
    const std::int64_t state = profile.weight_bytes + profile.gradient_bytes + profile.optimizer_bytes;
    weights.push_back(balance == Balance::kTime
                          ? block.forward + block.backward
                          : block.parameters * state + placement.depth() * block.activation_bytes);
  }
  Cuts even = smallest_maximum(weights, placement.stages());
  if (balance == Balance::kMemory) return even;
  const RoundModel model(profile, placement, slowness);
  Cuts cuts = refine(even, model);
  if (slowness.empty()) return cuts;
  Cuts uneven = refine(smallest_maximum(weights, slowness_of_stages(placement, slowness)), model);
  return model.estimate(uneven) < model.estimate(cuts) ? uneven : cuts;
}

Tick estimated_round(const ModelProfile& profile, const Placement& placement, const Slowness& slowness,
                     const Cuts& cuts) {
  return RoundModel(profile, placement, slowness).estimate(cuts).round;
}

}  // namespace everstep::scheduler
