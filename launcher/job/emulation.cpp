#include "launcher/job/emulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>

#include "base/text.h"
#include "launcher/cli/values.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kOfModel = "model:";

Tick ticks_of_ms(double ms) { return std::llround(ms * 1e6); }

trainer::EmulatedTimes share_of(const Emulation& emulation, double share) {
  const auto waits = [&](double ms) { return std::chrono::nanoseconds(ticks_of_ms(ms * share)); };
  return {waits(emulation.forward_ms), waits(emulation.backward_ms), waits(emulation.weights_ms)};
}

// Of the time of a whole model, the part of these blocks.
double share_of_model(const scheduler::ModelProfile& profile, int first_block, int end_block) {
  const auto time = [&](int begin, int end) {
    const scheduler::StageCost stage = stage_cost(profile, begin, end);
    return static_cast<double>(stage.forward + stage.backward);
  };
  return time(first_block, end_block) / time(0, static_cast<int>(profile.blocks.size()));
}

void refuse(const Config& config, std::string_view name, std::string_view why, std::string hint, Outcome& failure) {
  if (!failure) failure = config.reject(name, why, std::move(hint));
}

}  // namespace

std::vector<OptionSpec> emulation_options() {
  return {
      {.name = "emulate",
       .value_name = "F:B",
       .help = "Wait F ms per forward and B ms per backward of a stage instead of computing; F:B:W: the gradients of "
               "the weights take W ms of their own; model:F:B: of the whole model, of which each stage takes its part. "
               "Plans are made for these times, but depth and width by the model's own"},
      {.name = "emulate-link",
       .value_name = "GBIT",
       .help = "With --emulate: gradients to be summed and new weights leave a worker over a link of so many Gbit/s, "
               "one after the other; if not set, as fast as the host allows",
       .on_resume = OnResume::kMayChange},
  };
}

std::optional<Emulation> read_emulation(const Config& config, Outcome& failure) {
  if (!config.is_set("emulate")) return std::nullopt;
  std::string text = Values(config).text("emulate");
  const bool of_model = text.starts_with(kOfModel);
  if (of_model) text.erase(0, kOfModel.size());
  std::vector<double> times;
  for (std::string rest = text + ":"; !rest.empty(); rest.erase(0, rest.find(':') + 1)) {
    const auto ms = parse_number<double>(rest.substr(0, rest.find(':')));
    times.push_back(ms && *ms <= 1e6 ? *ms : -1);
  }
  const bool is_known = (times.size() == 2 || times.size() == 3) && std::ranges::min(times) >= 0;
  if (is_known) return Emulation{times[0], times[1], times.size() == 3 ? times[2] : 0, of_model};
  refuse(config, "emulate", "expected two or three times in ms with colons between them", "--emulate=10:20", failure);
  return std::nullopt;
}

std::optional<std::int64_t> read_emulated_link(const Config& config, bool emulated, Outcome& failure) {
  if (!config.is_set("emulate-link")) return std::nullopt;
  constexpr double kBytesPerGbit = 1e9 / 8;
  Values values(config);
  const double gbit = values.number("emulate-link", {.min = 0.001, .max = 1e6});
  if (!failure) failure = values.failure();
  if (!emulated)
    refuse(config, "emulate-link", "emulates the links of emulated devices, and needs --emulate", {}, failure);
  return std::llround(gbit * kBytesPerGbit);
}

scheduler::Hardware emulated_hardware(scheduler::Hardware hardware, const std::optional<Emulation>& emulation,
                                      const std::optional<std::int64_t>& link_bytes_per_second) {
  hardware.sum_bytes_per_second = link_bytes_per_second.value_or(0);
  if (emulation && !emulation->of_model) {
    const Tick weights = ticks_of_ms(emulation->weights_ms);
    hardware.stage_times = {ticks_of_ms(emulation->forward_ms), ticks_of_ms(emulation->backward_ms) + weights, weights};
  }
  return hardware;
}

scheduler::ModelProfile emulated_profile(scheduler::ModelProfile profile, const std::optional<Emulation>& emulation) {
  if (!emulation || !emulation->of_model) return profile;
  std::vector<double> shares;
  for (int block = 0; block < std::ssize(profile.blocks); ++block) {
    shares.push_back(share_of_model(profile, block, block + 1));
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double share = shares[i];
    scheduler::BlockProfile& block = profile.blocks[i];
    block.weights = ticks_of_ms(emulation->weights_ms * share);
    // No block of a profile takes no time.
    block.forward = std::max<Tick>(1, ticks_of_ms(emulation->forward_ms * share));
    block.backward = std::max<Tick>(1, ticks_of_ms(emulation->backward_ms * share) + block.weights);
  }
  return profile;
}

trainer::EmulatedTimes emulated_times(const Emulation& emulation, const scheduler::Plan& plan) {
  return share_of(emulation, static_cast<double>(plan.depth) / static_cast<double>(plan.cuts.size() - 1));
}

trainer::EmulatedTimes emulated_part(const Emulation& emulation, const scheduler::ModelProfile& profile,
                                     int first_block, int end_block) {
  return share_of(emulation, share_of_model(profile, first_block, end_block));
}

}  // namespace everstep::launcher
