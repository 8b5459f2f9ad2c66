#include "trainer/torch/devices.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "trainer/torch/torch_device.h"
#include "trainer/torch/torch_device_memory.h"

namespace everstep::trainer {
namespace {

std::vector<DeviceKind>& added_kinds() {
  static std::vector<DeviceKind> kinds;
  return kinds;
}

const DeviceKind* find_kind(const std::string& name) {
  const auto& kinds = added_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const DeviceKind& one) { return one.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

// Nothing: no kind of accelerator that LibTorch knows.
std::optional<c10::DeviceType> type_of_kind(const std::string& kind) {
  try {
    const c10::Device device(kind);
    if (device.is_cpu() || device.is_meta() || device.has_index()) return std::nullopt;
    return device.type();
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

Result<std::vector<DeviceFacts>> list_by_torch(const std::string& kind) {
  const auto type = type_of_kind(kind);
  if (!type) return invalid_argument("there is no kind of device '" + kind + "'", "use cpu, cuda, cuda:N or auto");
  if (!c10::impl::hasDeviceGuardImpl(*type)) {
    return invalid_argument("this build has no " + upper_case(kind),
                            kind == "cuda" ? "scripts/setup --cuda and the preset cuda make one that has"
                                           : "use cpu, cuda, cuda:N or auto");
  }
  return std::vector<DeviceFacts>(static_cast<std::size_t>(c10::impl::getDeviceGuardImpl(*type)->deviceCount()));
}

}  // namespace

void add_device_kind(DeviceKind kind) { added_kinds().push_back(std::move(kind)); }

Result<std::vector<DeviceFacts>> list_devices(const std::string& kind) {
  const DeviceKind* known = find_kind(kind);
  auto devices = known != nullptr ? known->list() : list_by_torch(kind);
  if (devices && devices->empty()) {
    return not_found("no device of the kind " + kind + " was found", "--device=cpu needs none");
  }
  return devices;
}

std::vector<std::pair<std::string, std::string>> device_provenance(const std::string& kind, int number) {
  std::vector<std::pair<std::string, std::string>> facts{{"device", kind}};
  if (const auto devices = list_devices(kind); devices && number < std::ssize(*devices)) {
    const std::string& name = (*devices)[static_cast<std::size_t>(number)].name;
    if (!name.empty()) facts.emplace_back("device-name", name);
  }
  const DeviceKind* known = find_kind(kind);
  if (known != nullptr && known->provenance) {
    for (auto& fact : known->provenance()) facts.push_back(std::move(fact));
  }
  return facts;
}

void prepare_devices() {
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision("highest");
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicCuDNN(true);
}

std::optional<std::int64_t> device_bytes_in_use(const std::string& kind, int number) {
  const DeviceKind* known = find_kind(kind);
  return known != nullptr && known->bytes_in_use ? known->bytes_in_use(number) : std::nullopt;
}

c10::Device torch_device(const std::string& kind, int number) {
  if (kind == "cpu") return at::kCPU;
  const DeviceKind* known = find_kind(kind);
  const bool is_renamed = known != nullptr && known->torch_name;
  return c10::Device(is_renamed ? known->torch_name(number) : kind + ":" + std::to_string(number));
}

std::unique_ptr<DeviceMemory> make_device_memory(const std::string& kind, int number, DeviceMemory::OnMark on_mark) {
  return std::make_unique<TorchDeviceMemory>(torch_device(kind, number), std::move(on_mark));
}

}  // namespace everstep::trainer
