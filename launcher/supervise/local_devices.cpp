#include "launcher/supervise/local_devices.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/child_process.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/output.h"
#include "launcher/job/device_environment.h"
#include "launcher/job/device_options.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/worker/device_list.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using Devices = std::vector<trainer::DeviceFacts>;

constexpr std::string_view kAllDevices = "auto";  // as --workers says it
constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;
// LibTorch has to be read from the disk, and a driver that slept wakes up.
constexpr std::chrono::minutes kAnswerPatience{2};

// The rest is for what a runtime needs for itself, and for gaps between tensors.
constexpr double kUsableMemory = 0.9;

std::optional<std::string> text_of(const storage::Json& object, std::string_view name) {
  const storage::Json* found = object.find(name);
  const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->value());
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::string count_of_kind(const std::string& kind, std::size_t count) {
  return "this host has " + std::to_string(count) + (count == 1 ? " device" : " devices") + " of the kind " + kind;
}

Outcome take_device(const Config& config, DeviceName& name) {
  if (auto failure = read_device_name(config, name)) return failure;
  if (name.is_host() || name.kind == kAnyDevice || !config.is_set("emulate")) return {};
  return config.reject("device", "does not go with --emulate, which computes nothing", "leave one of the two out");
}

bool wants_all(const Config& config) { return config.setting("workers").text == kAllDevices; }

// Whether the workers of this host have what --transport asks for. What is no transport is refused with the others.
Outcome check_transport(const Config& config, const LocalDevices& devices, const Devices& found, Streams& streams) {
  const std::string transport = config.setting("transport").text.value_or(kAnyTransport);
  const std::string& missing = found.front().no_nccl;
  if (transport == kHostTransport || missing.empty()) return {};
  if (transport == kNcclTransport) return config.reject("transport", missing, "use host or auto");
  if (devices.numbers.size() > 1) {
    print_event(streams, LogLine("transport_chosen").add("transport", kHostTransport).add("reason", missing).text());
  }
  return {};
}

Outcome refuse_nccl_on_host(const Config& config) {
  if (config.setting("transport").text != kNcclTransport) return {};
  return config.reject("transport", "NCCL carries tensors between GPUs, and this job computes on the CPU",
                       "add --device=cuda, or leave it out");
}

void share_device_memory(Config& config, const Devices& devices) {
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  const auto smallest = std::min_element(devices.begin(), devices.end(),
                                         [](const auto& a, const auto& b) { return a.memory_bytes < b.memory_bytes; });
  if (config.is_set("memory-gib") || smallest->memory_bytes == 0) return;
  const double gib = kUsableMemory * static_cast<double>(smallest->memory_bytes) / kBytesPerGib;
  set_setting(config, "memory-gib", shortest_text(gib));
}

// With `numbers` as they are so far: all of them, or the one that was asked for.
Outcome take_workers(Config& config, const DeviceName& name, LocalDevices& devices) {
  if (wants_all(config)) set_setting(config, "workers", std::to_string(devices.numbers.size()));
  const auto workers = parse_number<int>(config.setting("workers").text.value_or(""));
  if (!workers || *workers <= std::ssize(devices.numbers)) return {};  // what is no number is refused with the others
  if (name.number) {
    return config.reject("device", "is one device, and there are " + std::to_string(*workers) + " workers",
                         "--device=" + name.kind + " gives each of them its own");
  }
  return config.reject("workers", count_of_kind(name.kind, devices.numbers.size()) + ", and each worker needs one",
                       "--workers=auto takes them all");
}

}  // namespace

Result<Devices> parse_device_list(std::string_view text, bool ended_well) {
  const std::string_view last = last_line(text);
  if (!ended_well) {
    return Error{ErrorCode::kUnavailable, "everstep-worker cannot look for devices: " + std::string(last),
                 "docs/gpu.md says which libraries it needs"};
  }
  const auto answer = storage::parse_json(last);
  const Error garbled{ErrorCode::kInternal, "everstep-worker did not say what devices there are", "please report it"};
  if (!answer) return garbled;
  if (const auto error = text_of(*answer, "error")) return not_found(*error, text_of(*answer, "hint").value_or(""));
  const storage::Json* list = answer->find("devices");
  const auto* elements = list == nullptr ? nullptr : std::get_if<storage::Json::Array>(&list->value());
  if (elements == nullptr) return garbled;
  Devices devices;
  for (const storage::Json& element : *elements) {
    const storage::Json* memory = element.find("memory_bytes");
    const auto* bytes = memory == nullptr ? nullptr : std::get_if<std::int64_t>(&memory->value());
    const auto name = text_of(element, "name");
    if (!name || bytes == nullptr) return garbled;
    devices.push_back({*name, *bytes, text_of(*answer, "no_nccl").value_or("")});
  }
  return devices;
}

std::string LocalDevices::device_of(int seat) const {
  return numbers.empty() ? kind : kind + ":" + std::to_string(numbers.at(static_cast<std::size_t>(seat)));
}

Result<Devices> ask_worker_program(const std::string& kind) {
  const auto directory = make_temporary_directory("devices");
  if (!directory) return directory.error();
  const auto remove = [](const std::string* made) {
    std::error_code ignored;
    std::filesystem::remove_all(*made, ignored);
  };
  const std::unique_ptr<const std::string, decltype(remove)> removed(&*directory, remove);
  const std::filesystem::path answer = std::filesystem::path(*directory) / "answer";
  auto child = ChildProcess::start({sibling_program("everstep-worker"), std::string(kDeviceListRole), kind}, answer);
  if (!child) return child.error();
  const bool has_ended = child->ends_within(kAnswerPatience);
  if (!has_ended) {
    return Error{ErrorCode::kUnavailable, "the driver of " + kind + " does not answer", "look at its log, or restart"};
  }
  const auto text = read_file(answer, kLongestAnswer);
  if (!text) return text.error();
  return parse_device_list(*text, child->wait_status() == 0);
}

Outcome find_devices(Config& config, ListDevices list, Streams& streams, LocalDevices& devices) {
  DeviceName name;
  if (auto failure = take_device(config, name)) return failure;
  const bool any = name.kind == kAnyDevice;
  if (any) name.kind = config.is_set("emulate") ? kHostDevice : "cuda";
  std::optional<Devices> found;
  if (!name.is_host()) {
    auto listed = list(name.kind);
    if (listed) {
      found = std::move(listed).value();
    } else if (!any) {
      return config.blame("device", listed.error());
    } else {
      print_event(streams,
                  LogLine("device_chosen").add("device", kHostDevice).add("reason", listed.error().line()).text());
    }
  }
  if (!found) {
    set_setting(config, "device", kHostDevice);
    if (wants_all(config)) set_setting(config, "workers", "1");
    return refuse_nccl_on_host(config);
  }
  devices.kind = name.kind;
  devices.numbers.resize(found->size());
  std::iota(devices.numbers.begin(), devices.numbers.end(), 0);
  if (name.number) {
    if (*name.number >= std::ssize(*found)) {
      return config.reject("device", count_of_kind(name.kind, found->size()), "they are counted from 0");
    }
    devices.numbers = {*name.number};
    found = Devices{(*found)[static_cast<std::size_t>(*name.number)]};
  }
  if (auto failure = take_workers(config, name, devices)) return failure;
  if (auto failure = check_transport(config, devices, *found, streams)) return failure;
  set_setting(config, "device", name.kind);
  share_device_memory(config, *found);
  if (any)
    print_event(streams, LogLine("device_chosen").add("device", name.kind).add("name", found->front().name).text());
  return {};
}

std::vector<std::string> explain_device(const Config& config, ListDevices list) {
  DeviceName name;
  if (read_device_name(config, name)) return {};
  if (name.kind == kAnyDevice) {
    constexpr const char* kGpu = "cuda";
    // Not every command has this one.
    const bool computes = std::ranges::none_of(
        config.settings, [](const Setting& one) { return one.name == "emulate" && one.text.has_value(); });
    name.kind = computes && list(kGpu) ? kGpu : kHostDevice;
  }
  return device_variable_lines(config, name.kind);
}

std::vector<std::string> explain_device(const Config& config) { return explain_device(config, ask_worker_program); }

Outcome check_device(Config& config) {
  DeviceName name;
  Outcome failure = take_device(config, name);
  if (wants_all(config)) set_setting(config, "workers", "1");
  if (!failure) set_setting(config, "device", name.kind == kAnyDevice ? kHostDevice : name.kind);
  if (!failure && name.is_host()) failure = refuse_nccl_on_host(config);
  return failure;
}

}  // namespace everstep::launcher
