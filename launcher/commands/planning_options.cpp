#include "launcher/commands/planning_options.h"

#include <cmath>

#include "launcher/commands/profile_file.h"
#include "launcher/files.h"
#include "launcher/values.h"
#include "scheduler/model_shape.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestProfile = std::size_t{16} << 20;

scheduler::ModelProfile profile_by_name(const Config& config, Values& values, Outcome& failure) {
  scheduler::ProfileOptions options;
  options.minibatch = static_cast<int>(values.integer("minibatch", {.min = 1, .max = 65536}));
  options.flops_per_second = 1e12 * values.number("tflops", {.min = 1e-6, .max = 1e6});
  const bool fp32 = values.choice("precision", {"bf16", "fp32"}) == 1;
  const std::string name = values.text("model");
  if (values.failure()) return {};
  const auto shape = scheduler::find_model(name);
  if (!shape) {
    failure = config.reject("model", shape.error().message, shape.error().hint);
    return {};
  }
  if (fp32) options.bytes_per_activation = 4;
  scheduler::ModelProfile profile = scheduler::estimate_profile(*shape, options);
  if (fp32) {
    // The weights are the master; only the two moments come on top.
    profile.weight_bytes = 4;
    profile.optimizer_bytes = 8;
  }
  return profile;
}

scheduler::ModelProfile profile_from_file(const Config& config, Values& values, Outcome& failure) {
  const std::string path = values.path("profile");
  if (values.failure()) return {};
  const auto text = read_file(path, kLargestProfile);
  if (!text) {
    failure = config.blame("profile", text.error());
    return {};
  }
  auto profile = parse_profile(*text);
  if (!profile) {
    failure = Failure(invalid_argument(path + ": " + profile.error().message, profile.error().hint));
    return {};
  }
  return *std::move(profile);
}

}  // namespace

std::vector<OptionSpec> planning_options() {
  return {
      {.name = "model", .value_name = "NAME", .default_text = "gpt2-small", .help = "Model with an estimated profile"},
      {.name = "profile", .value_name = "FILE", .help = "Measured profile in JSON, instead of --model"},
      {.name = "minibatch", .value_name = "N", .default_text = "4", .help = "Sequences per minibatch, with --model"},
      {.name = "tflops", .value_name = "X", .default_text = "100", .help = "Speed one worker reaches, with --model"},
      {.name = "precision",
       .value_name = "P",
       .default_text = "bf16",
       .help = "bf16 (fp32 master) or fp32, with --model"},
      {.name = "window", .value_name = "M", .default_text = "128", .help = "Minibatches per update, over all workers"},
      {.name = "memory-gib", .value_name = "X", .default_text = "40", .help = "Memory of one worker for training"},
      {.name = "link-gbit", .value_name = "X", .default_text = "100", .help = "Bandwidth between two workers"},
      {.name = "link-us", .value_name = "X", .default_text = "20", .help = "Latency between two workers"},
      {.name = "redundancy", .value_name = "K", .default_text = "1", .help = "Guard copies of owner state per stage"},
      {.name = "synchronous", .help = "No minibatch may meet two weight versions"},
  };
}

PlanningInput read_planning_input(const Config& config, Outcome& failure) {
  Values values(config);
  PlanningInput input;
  scheduler::PlanOptions& options = input.options;
  options.window = static_cast<int>(values.integer("window", {.min = 1, .max = 1'000'000}));
  options.redundancy = static_cast<int>(values.integer("redundancy", {.min = 0, .max = 64}));
  options.synchronous = values.flag("synchronous");
  scheduler::Hardware& hardware = options.hardware;
  hardware.memory_bytes = read_memory_bytes(values);
  hardware.link_bytes_per_second = std::llround(values.number("link-gbit", {.min = 1e-3, .max = 1e6}) * 1e9 / 8);
  hardware.link_latency = std::llround(values.number("link-us", {.min = 0, .max = 1e7}) * 1e3);
  if (!values.failure()) {
    const bool from_file = config.is_set("profile");
    input.profile = from_file ? profile_from_file(config, values, failure) : profile_by_name(config, values, failure);
  }
  if (values.failure()) failure = values.failure();
  return input;
}

std::int64_t read_memory_bytes(Values& values) {
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  return std::llround(values.number("memory-gib", {.min = 0, .max = 1e6, .above_min = true}) * kBytesPerGib);
}

std::vector<scheduler::WorkerInfo> unnamed_workers(int count, int per_host) {
  std::vector<scheduler::WorkerInfo> workers;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i / per_host);
    // Padded, so that the order of names is the order of numbers.
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
    workers.push_back({WorkerId{{0, static_cast<std::uint64_t>(i) + 1}}, "host-" + number});
  }
  return workers;
}

}  // namespace everstep::launcher
