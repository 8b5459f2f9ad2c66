#include "launcher/worker/doctor/profile_measurement.h"

#include <algorithm>
#include <array>
#include <vector>

#include "launcher/cli/host.h"
#include "launcher/worker/doctor/lone_stage.h"
#include "launcher/worker/doctor/measured_model.h"
#include "trainer/update/host_memory.h"

namespace everstep::launcher {
namespace {

constexpr std::int64_t kWarmUp = 3;
constexpr std::int64_t kTimed = 9;

double median_ms(std::vector<Tick> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle) / 1e6;
}

// A kind of block: the embedding, the first transformer block, the head.
struct TimedBlock {
  LoneStage stage;
  std::vector<Tick> forward{};
  std::vector<Tick> backward{};
  std::vector<Tick> weights{};
};

class Stopwatch {
 public:
  explicit Stopwatch(trainer::DeviceMemory& memory) : memory_(memory) {}

  // Until the device has done it.
  template <typename Work>
  auto time(std::vector<Tick>& times, const Work& work) -> decltype(work()) {
    const Tick begin = monotonic_now();
    auto result = work();
    wait_for(memory_.mark());
    times.push_back(monotonic_now() - begin);
    return result;
  }

 private:
  trainer::DeviceMemory& memory_;
};

Status run_through(std::array<TimedBlock, 3>& blocks, Position position, Stopwatch& watch) {
  trainer::Buffer activation;
  for (TimedBlock& block : blocks) {
    auto output = watch.time(block.forward, [&] { return block.stage.compute().forward(position, activation); });
    if (!output) return output.error();
    activation = std::move(output->tensor);
  }
  trainer::Buffer gradient;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    auto input =
        watch.time(block->backward, [&] { return block->stage.compute().backward_input(position, gradient, kOneSum); });
    if (!input) return input.error();
    EVERSTEP_TRY(
        watch.time(block->weights, [&] { return block->stage.compute().backward_weights(position, kOneSum); }));
    gradient = std::move(*input);
  }
  return {};
}

storage::Json block_json(const scheduler::BlockProfile& block, int repeat, const TimedBlock& timed) {
  const double weights = median_ms(timed.weights);
  storage::Json json = storage::Json::object();
  json.set("name", block.name).set("repeat", repeat).set("parameters", block.parameters);
  json.set("forward_ms", median_ms(timed.forward)).set("backward_ms", median_ms(timed.backward) + weights);
  json.set("weights_ms", weights).set("activation_bytes", block.activation_bytes);
  return json.set("output_bytes", block.output_bytes).set("working_bytes", block.working_bytes);
}

}  // namespace

Result<storage::Json> measure_profile(const WorkerDevice& device, const trainer::ModelConfig& model,
                                      const std::filesystem::path& directory) {
  const auto on_device = device.make_memory();
  trainer::DeviceMemory& memory = on_device ? *on_device : trainer::host_memory();
  const auto data = open_doctor_data(directory, model);
  if (!data) return data.error();
  const int head = model.blocks() - 1;
  const auto timed = [&](int block) {
    return TimedBlock{LoneStage(model, block, block + 1, kMeasuredAccumulation, **data, memory)};
  };
  std::array<TimedBlock, 3> blocks{timed(0), timed(1), timed(head)};
  Stopwatch watch(memory);
  for (std::int64_t position = 0; position < kWarmUp + kTimed; ++position) {
    if (position == kWarmUp) {
      for (TimedBlock& block : blocks) block.forward = block.backward = block.weights = {};
    }
    EVERSTEP_TRY(run_through(blocks, Position{position}, watch));
  }
  constexpr double kAnySpeed = 1e12;
  const scheduler::ModelProfile sizes = profile_of(model, kMeasuredAccumulation, kAnySpeed);
  storage::Json list = storage::Json::array();
  list.append(block_json(sizes.blocks.front(), 1, blocks[0]));
  list.append(block_json(sizes.blocks[1], model.shape.layers, blocks[1]));
  list.append(block_json(sizes.blocks.back(), 1, blocks[2]));
  storage::Json profile = storage::Json::object();
  profile.set("name", model.shape.name).set("tokens_per_minibatch", model.tokens_per_minibatch());
  profile.set("weight_bytes", sizes.weight_bytes).set("gradient_bytes", sizes.gradient_bytes);
  return profile.set("optimizer_bytes", sizes.optimizer_bytes).set("blocks", std::move(list));
}

}  // namespace everstep::launcher
