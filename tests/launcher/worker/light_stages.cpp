// What trainer/torch/torch_stage.h, devices.h and operator_probe.h declare, without LibTorch: workers that start at
// once, and train the model of tests/trainer/recovery/mixing_stage.h. All else about them is the product's.

#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/operator_probe.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

TrainHooks hooks_of(const ModelConfig& config) {
  TrainHooks hooks;
  add_mixing_hooks(config, hooks);
  return hooks;
}

}  // namespace

void initialise_weights(const ModelConfig& config, const StageLayout& layout, const Buffer& weights) {
  hooks_of(config).initialise_weights(layout, weights);
}

void initialise_master(const ModelConfig& config, const StageLayout& layout, const Buffer& master) {
  hooks_of(config).initialise_master(layout, master);
}

std::unique_ptr<StageCompute> make_torch_stage(const StageRequest& request) { return make_mixing_stage(request); }

void prepare_torch(int /*threads*/) {}

void forget_freed_tensors() {}

const char* cpu_capability() { return "none"; }

const char* torch_version() { return "none"; }

Result<std::vector<DeviceFacts>> list_devices(const std::string& /*kind*/) {
  return invalid_argument("this build has no devices", "use cpu");
}

std::vector<std::pair<std::string, std::string>> device_provenance(const std::string& /*kind*/, int /*number*/) {
  return {};
}

std::optional<std::int64_t> device_bytes_in_use(const std::string& /*kind*/, int /*number*/) { return std::nullopt; }

Result<std::vector<OperatorBits>> probe_operators(const std::string& /*kind*/, int /*number*/) {
  return invalid_argument("this build has no operators", "use cpu");
}

void prepare_devices() {}

std::unique_ptr<DeviceMemory> make_device_memory(const std::string& /*kind*/, int /*number*/,
                                                 DeviceMemory::OnMark /*on_mark*/) {
  return nullptr;
}

}  // namespace everstep::trainer
