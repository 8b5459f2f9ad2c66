#include "launcher/job/device_options.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace everstep::launcher {
Result<DeviceName> parse_device(const std::string& text) {
  constexpr int kMostDevices = 1024;
  const Error unknown = invalid_argument("is no device", "use cpu, cuda, cuda:N or auto");
  const std::size_t colon = text.find(':');
  DeviceName name{text.substr(0, colon)};
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.kind.empty() || !std::all_of(name.kind.begin(), name.kind.end(), fits)) return unknown;
  if (colon == std::string::npos) return name;
  const std::string digits = text.substr(colon + 1);
  const bool is_plain =
      !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  name.number = is_plain ? parse_number<int>(digits) : std::nullopt;
  if (!name.number || *name.number >= kMostDevices || name.is_host() || name.kind == kAnyDevice) return unknown;
  return name;
}

Outcome read_device_name(const Config& config, DeviceName& name) {
  auto parsed = parse_device(config.setting("device").text.value_or(kHostDevice));
  if (!parsed) return config.reject("device", parsed.error().message, parsed.error().hint);
  name = std::move(parsed).value();
  return {};
}

OptionSpec device_option() {
  return {
      .name = "device",
      .value_name = "D",
      .default_text = kHostDevice,
      .help = "What workers compute on: cpu, cuda (one GPU each), cuda:N (that one), or auto (GPUs if there are any)",
      .on_resume = OnResume::kMayChange};
}

OptionSpec transport_option() {
  return {.name = "transport",
          .value_name = "T",
          .default_text = kAnyTransport,
          .help =
              "How tensors travel between GPUs: nccl, host (through pinned memory, over the wire between the "
              "hosts), or auto (nccl between workers that have it)",
          .on_resume = OnResume::kMayChange};
}

Outcome read_transport(const Config& config, std::string& transport) {
  const std::string text = config.setting("transport").text.value_or(kAnyTransport);
  if (text != kHostTransport && text != kNcclTransport && text != kAnyTransport) {
    return config.reject("transport", "is no transport", "use nccl, host or auto");
  }
  transport = text;
  return {};
}

}  // namespace everstep::launcher
