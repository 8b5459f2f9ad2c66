#include "launcher/job/device_options.h"

#include <algorithm>

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

OptionSpec device_option() {
  return {
      .name = "device",
      .value_name = "D",
      .default_text = kHostDevice,
      .help = "What workers compute on: cpu, cuda (one GPU each), cuda:N (that one), or auto (GPUs if there are any)",
      .on_resume = OnResume::kMayChange};
}

}  // namespace everstep::launcher
