#include "scheduler/profile.h"

#include <algorithm>
#include <bit>

namespace everstep::scheduler {
namespace {

// Bounds on whole models keep every sum over stages and minibatches far from the end of 64 bits.
constexpr std::int64_t kMostBlocks = 1000;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 42;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;
constexpr Tick kLongestMinibatch = 3600 * kTicksPerSecond;

Status in_range(const std::string& what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_argument(what + " is " + std::to_string(value) + ", must be between " + std::to_string(least) +
                          " and " + std::to_string(most));
}

Tick transfer_time(std::int64_t bytes, std::int64_t bytes_per_second) {
  return ticks_of(static_cast<double>(bytes) / static_cast<double>(bytes_per_second));
}

// Where a worker has several stages of a pipeline they share its time.
void replace_times(StageCost& cost, const StageTimes& times, const Placement& placement) {
  const auto share = [&](Tick time) { return time * placement.depth() / placement.stages(); };
  cost.forward = share(times.forward);
  cost.backward = share(times.backward);
  cost.weights = share(times.weights);
}

}  // namespace

StageCost stage_cost(const ModelProfile& profile, int begin, int end) {
  StageCost cost;
  cost.forward = cost.backward = cost.weights = 0;
  std::int64_t parameters = 0;
  for (int block = begin; block < end; ++block) {
    const BlockProfile& profiled = profile.blocks[block];
    cost.forward += profiled.forward;
    cost.backward += profiled.backward;
    cost.weights += profiled.weights;
    cost.activation_bytes += profiled.activation_bytes;
    // About as much: inputs of dense layers stay, and gradients of their outputs take the place of the rest.
    if (profiled.weights > 0) cost.weights_kept_bytes += profiled.activation_bytes;
    cost.working_bytes = std::max(cost.working_bytes, profiled.working_bytes);
    parameters += profiled.parameters;
  }
  cost.weight_bytes = parameters * profile.weight_bytes;
  cost.gradient_bytes = parameters * profile.gradient_bytes;
  cost.optimizer_bytes = parameters * profile.optimizer_bytes;
  return cost;
}

Status check(const ModelProfile& profile) {
  EVERSTEP_TRY(
      in_range("profile '" + profile.name + "': the number of blocks", std::ssize(profile.blocks), 1, kMostBlocks));
  EVERSTEP_TRY(in_range("tokens_per_minibatch", profile.tokens_per_minibatch, 0, kMostBytes));
  EVERSTEP_TRY(in_range("weight_bytes", profile.weight_bytes, 1, 8));
  EVERSTEP_TRY(in_range("gradient_bytes", profile.gradient_bytes, 1, 16));
  EVERSTEP_TRY(in_range("optimizer_bytes", profile.optimizer_bytes, 0, 64));
  std::int64_t parameters = 0;
  std::int64_t activation_bytes = 0;
  Tick time = 0;
  for (std::size_t i = 0; i < profile.blocks.size(); ++i) {
    const BlockProfile& block = profile.blocks[i];
    const std::string where = "block " + std::to_string(i) + " ('" + block.name + "'): ";
    EVERSTEP_TRY(in_range(where + "parameters", block.parameters, 0, kMostParameters));
    EVERSTEP_TRY(in_range(where + "activation_bytes", block.activation_bytes, 0, kMostBytes));
    EVERSTEP_TRY(in_range(where + "output_bytes", block.output_bytes, 0, kMostBytes));
    EVERSTEP_TRY(in_range(where + "working_bytes", block.working_bytes, 0, kMostBytes));
    EVERSTEP_TRY(in_range(where + "forward time in ns", block.forward, 1, kLongestMinibatch));
    EVERSTEP_TRY(in_range(where + "backward time in ns", block.backward, 1, kLongestMinibatch));
    EVERSTEP_TRY(in_range(where + "time for weights in ns", block.weights, 0, block.backward));
    parameters += block.parameters;
    activation_bytes += block.activation_bytes;
    time += block.forward + block.backward;
  }
  EVERSTEP_TRY(in_range("the parameters of all blocks: their number", parameters, 0, kMostParameters));
  EVERSTEP_TRY(in_range("the activation_bytes of all blocks: their sum", activation_bytes, 0, kMostBytes));
  return in_range("the time of a minibatch through all blocks in ns", time, 1, kLongestMinibatch);
}

Status check(const Hardware& hardware) {
  EVERSTEP_TRY(in_range("memory per worker in bytes", hardware.memory_bytes, 1, kMostBytes));
  EVERSTEP_TRY(in_range("link bytes per second", hardware.link_bytes_per_second, 1, kMostBytes));
  EVERSTEP_TRY(in_range("link bytes per second for sums", hardware.sum_bytes_per_second, 0, kMostBytes));
  if (const auto& times = hardware.stage_times) {
    EVERSTEP_TRY(in_range("forward time of a stage in ns", times->forward, 0, kLongestMinibatch));
    EVERSTEP_TRY(in_range("backward time of a stage in ns", times->backward, 0, kLongestMinibatch));
    EVERSTEP_TRY(in_range("time of a stage for weights in ns", times->weights, 0, times->backward));
  }
  EVERSTEP_TRY(in_range("link latency in ns", hardware.link_latency, 0, kLongestMinibatch));
  return in_range("memory bytes per second", hardware.memory_bytes_per_second, 1, kMostBytes);
}

TimingModel timing_model(const ModelProfile& profile, const Hardware& hardware, const Placement& placement, int width,
                         const Cuts& cuts) {
  TimingModel model;
  model.latency = hardware.link_latency;
  const bool replicated = placement.pipelines() > 1;
  const std::int64_t sum_link =
      hardware.sum_bytes_per_second > 0 ? hardware.sum_bytes_per_second : hardware.link_bytes_per_second;
  Tick step = 0;
  Tick broadcast = 0;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    StageCost cost = stage_cost(profile, cuts[stage], cuts[stage + 1]);
    if (hardware.stage_times) replace_times(cost, *hardware.stage_times, placement);
    cost.transfer = transfer_time(profile.blocks[cuts[stage + 1] - 1].output_bytes, hardware.link_bytes_per_second);
    // A pipelined reduce moves the gradient once over each link; a ring over the groups moves it twice, less one part.
    const Tick once = transfer_time(cost.gradient_bytes, sum_link);
    const double around_the_ring = 2.0 * (width - 1) / width;
    cost.reduce = (replicated ? once : 0) + static_cast<Tick>(static_cast<double>(once) * around_the_ring);
    step =
        std::max(step, transfer_time(2 * cost.optimizer_bytes + cost.weight_bytes, hardware.memory_bytes_per_second));
    model.stages.push_back(cost);
  }
  for (int device = 0; replicated && device < placement.depth(); ++device) {
    std::int64_t received = 0;
    for (const int stage : placement.stages_on(device)) received += model.stages[stage].weight_bytes;
    broadcast = std::max(broadcast, transfer_time(received, sum_link));
  }
  const auto workers = static_cast<unsigned>(placement.depth() * width);
  const int hops = std::bit_width(workers - 1);  // of the exchange of the global norm, there and back
  model.update = Tick{2} * hops * hardware.link_latency + step + broadcast;
  return model;
}

}  // namespace everstep::scheduler
