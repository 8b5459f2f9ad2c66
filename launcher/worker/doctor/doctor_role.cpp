#include "launcher/worker/doctor/doctor_role.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "base/text.h"
#include "launcher/job/device_environment.h"
#include "launcher/worker/doctor/block_examination.h"
#include "launcher/worker/doctor/link_measurement.h"
#include "launcher/worker/doctor/measured_model.h"
#include "launcher/worker/doctor/profile_measurement.h"
#include "launcher/worker/worker_process.h"
#include "storage/json/json.h"
#include "trainer/nccl/nccl_api.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/operator_probe.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

using storage::Json;

// What a part is asked about.
struct Examined {
  DeviceName name;                      // one device, or all of a kind
  std::vector<WorkerDevice> devices{};  // those; of the host itself
  std::filesystem::path directory{};
};

std::string nccl_text(const std::string& kind) {
  if (kind == kHostDevice) return "none: NCCL is for GPUs";
  const auto api = trainer::find_nccl(kind);
  return api ? std::to_string(api->get_version()) : "none: " + api.error().message;
}

Result<Json> list_devices_of(const Examined& examined) {
  Json list = Json::array();
  if (!examined.name.is_host()) {
    const auto listed = trainer::list_devices(examined.name.kind);
    if (!listed) return listed.error();
    for (const trainer::DeviceFacts& device : *listed) {
      list.append(Json::object().set("name", device.name).set("memory_bytes", device.memory_bytes));
    }
  }
  Json provenance = Json::object();
  for (const auto& [name, value] : examined.devices.front().provenance()) provenance.set(name, value);
  Json answer = Json::object().set("devices", std::move(list)).set("provenance", std::move(provenance));
  return answer.set("nccl", nccl_text(examined.name.kind));
}

Json bits_json(const std::vector<trainer::OperatorBits>& all) {
  Json list = Json::array();
  for (const trainer::OperatorBits& one : all) {
    list.append(Json::object().set("name", one.name).set("bits", hex_text(one.bits)).set("known", hex_text(one.known)));
  }
  return list;
}

Result<Json> examine_operators(const Examined& examined) {
  const auto on_host = trainer::probe_operators(kHostDevice, 0);
  if (!on_host) return on_host.error();
  Json answer = Json::object().set("cpu", bits_json(*on_host));
  if (examined.name.is_host()) return answer;
  Json devices = Json::array();
  for (const WorkerDevice& device : examined.devices) {
    Json one = Json::object().set("device", device.text());
    const auto bits = trainer::probe_operators(device.name().kind, *device.name().number);
    devices.append(bits ? std::move(one.set("operators", bits_json(*bits)))
                        : std::move(one.set("error", bits.error().line())));
  }
  return answer.set("devices", std::move(devices));
}

Result<Json> examine_all_blocks(const Examined& examined) {
  return examine_blocks(examined.devices, examined.directory);
}

Result<Json> examine_links(const Examined& examined) { return measure_links(examined.devices); }

Result<Json> examine_speed(const Examined& examined) {
  Json profiles = Json::array();
  for (const WorkerDevice& device : examined.devices) {
    auto profile = measure_profile(device, measured_model(examined.name), examined.directory);
    if (!profile)
      return Error{profile.error().code, device.text() + ": " + profile.error().message, profile.error().hint};
    profiles.append(Json::object().set("device", device.text()).set("profile", std::move(*profile)));
  }
  return Json::object().set("profiles", std::move(profiles));
}

struct Part {
  std::string_view name;
  Result<Json> (*run)(const Examined& examined);
};
constexpr std::array kParts{Part{"devices", list_devices_of}, Part{"operators", examine_operators},
                            Part{"blocks", examine_all_blocks}, Part{"links", examine_links},
                            Part{"profile", examine_speed}};

Status open_devices(Examined& examined) {
  trainer::prepare_torch(kTorchThreads);  // as every worker has
  int count = 1;
  if (!examined.name.is_host() && !examined.name.number) {
    const auto listed = trainer::list_devices(examined.name.kind);
    if (!listed) return listed.error();
    count = static_cast<int>(listed->size());
  }
  for (int i = 0; i < count; ++i) {
    DeviceName one = examined.name;
    if (!one.is_host() && !one.number) one.number = i;
    auto device = WorkerDevice::open(one, device_variables(one.kind, kNcclTransport, {}));
    if (!device) return device.error();
    examined.devices.push_back(std::move(*device));
  }
  return {};
}

Result<Json> answer(const std::vector<std::string>& args) {
  const auto* const part =
      std::find_if(kParts.begin(), kParts.end(), [&](const Part& one) { return one.name == args[0]; });
  if (part == kParts.end()) return invalid_argument("the doctor examines no " + args[0]);
  auto name = parse_device(args[1]);
  if (!name) return name.error();
  Examined examined{.name = std::move(*name), .directory = args[2]};
  EVERSTEP_TRY(open_devices(examined));
  return part->run(examined);
}

}  // namespace

ExitCode run_doctor_role(const std::vector<std::string>& args) {
  if (args.size() != 3) return ExitCode::kUsage;
  prepare_worker_process();
  die_with_parent();
  const auto answered = answer(args);
  const Json said =
      answered ? *answered : Json::object().set("error", answered.error().message).set("hint", answered.error().hint);
  // A line of its own: libraries may have written something before.
  std::cout << "\n" << to_text(said, 0) << "\n" << std::flush;
  return std::cout ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace everstep::launcher
