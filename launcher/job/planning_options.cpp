#include "launcher/job/planning_options.h"

#include <cmath>

#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/values.h"
#include "launcher/job/profile_file.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestProfile = std::size_t{16} << 20;

Device read_device(const Config& config, int workers, Outcome& failure) {
  Values values(config);
  // A variable or a file may say to `everstep train`, too, what workers compute on.
  Device device =
      values.choice("device", {"cpu", "gpu", "cuda"}) == 0 ? cpu_device(host_memory_bytes() / workers) : gpu_device();
  if (config.is_set("tflops")) device.flops_per_second = 1e12 * values.number("tflops", {.min = 1e-6, .max = 1e6});
  if (config.is_set("link-gbit")) {
    const double gbit = values.number("link-gbit", {.min = 1e-3, .max = 1e6});
    device.hardware.link_bytes_per_second = std::llround(gbit * 1e9 / 8);
  }
  if (config.is_set("link-us")) {
    device.hardware.link_latency = std::llround(values.number("link-us", {.min = 0, .max = 1e7}) * 1e3);
  }
  failure = values.failure();
  return device;
}

// A measured profile says all this already.
Outcome refuse_estimates(const Config& config) {
  std::vector<OptionSpec> estimated = model_options();
  for (const char* name : {"tflops", "reproducible", "stash"}) estimated.push_back({.name = name});
  for (const OptionSpec& option : estimated) {
    if (config.setting(option.name).source != Source::kFlag) continue;
    return config.reject(option.name, "does not go with --profile, which says what was measured",
                         "leave one of the two out");
  }
  return {};
}

scheduler::ModelProfile profile_from_file(const Config& config, Outcome& failure) {
  failure = refuse_estimates(config);
  Values values(config);
  const std::string path = values.path("profile");
  if (!failure) failure = values.failure();
  if (failure) return {};
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
  std::vector<OptionSpec> options = wish_options();
  for (OptionSpec& option : model_options()) options.push_back(std::move(option));
  for (OptionSpec& option : emulation_options()) options.push_back(std::move(option));
  options.push_back({.name = "profile", .value_name = "FILE", .help = "Measured profile in JSON, instead of a model"});
  options.push_back(
      {.name = "device",
       .value_name = "KIND",
       .default_text = "cpu",
       .help =
           "What a worker is made of: cpu, as everstep train reckons (0.05 TFLOP/s, 64 Gbit/s, 50 us, "
           "a share of this host's memory), or gpu (100 TFLOP/s, 100 Gbit/s, 20 us, 40 GiB), which cuda means, too"});
  options.push_back({.name = "tflops", .value_name = "X", .help = "Speed one worker reaches, instead of the device's"});
  options.push_back(
      {.name = "link-gbit", .value_name = "X", .help = "Bandwidth between two workers, instead of the device's"});
  options.push_back(
      {.name = "link-us", .value_name = "X", .help = "Latency between two workers, instead of the device's"});
  return options;
}

PlanningInput read_planning_input(const Config& config, int workers, Outcome& failure) {
  PlanningInput input;
  const Device device = read_device(config, workers, failure);
  if (failure) return input;
  PlanRequest request = read_plan_request(config, device, kMostWorkers, failure);
  if (failure) return input;
  const bool from_file = config.is_set("profile");
  input.profile = from_file ? emulated_profile(profile_from_file(config, failure), request.emulation)
                            : planned_profile(request, device.flops_per_second);
  input.options = std::move(request.wishes);
  return input;
}

}  // namespace everstep::launcher
