#include "launcher/worker/worker_device.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

#include "trainer/staging/staged_transport.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

// For the last frames of a run that has ended well.
constexpr std::chrono::seconds kFlushPatience{20};

// What CUDA reads once, when it starts. Whoever set one of them knows better.
void set_cuda_environment() {
  constexpr int kKeep = 0;
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);  // sums of one order, whatever else runs
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);   // streams that do not wait for each other
  ::setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);        // loading a kernel later would stop the device
}

}  // namespace

Result<WorkerDevice> WorkerDevice::open(const DeviceName& name) {
  if (name.is_host()) return WorkerDevice();
  if (name.kind == "cuda") set_cuda_environment();
  const auto devices = trainer::list_devices(name.kind);
  if (!devices) return devices.error();
  WorkerDevice device({name.kind, name.number.value_or(0)});
  if (*device.name_.number >= std::ssize(*devices)) {
    return not_found(
        "there is no device " + device.text() + ": this host has " + std::to_string(devices->size()) + " of them",
        "they are counted from 0");
  }
  trainer::prepare_devices();
  return device;
}

std::string WorkerDevice::text() const {
  return name_.is_host() ? name_.kind : name_.kind + ":" + std::to_string(*name_.number);
}

storage::Settings WorkerDevice::provenance() const {
  storage::Settings facts{{"kernels", trainer::cpu_capability()}, {"libtorch", trainer::torch_version()}};
  if (name_.is_host()) return facts;
  for (auto& fact : trainer::device_provenance(name_.kind, *name_.number)) facts.push_back(std::move(fact));
  if (const char* workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG"); workspace != nullptr && name_.kind == "cuda") {
    facts.emplace_back("cublas-workspace", workspace);
  }
  std::sort(facts.begin(), facts.end());
  return facts;
}

std::unique_ptr<trainer::DeviceMemory> WorkerDevice::make_memory(trainer::DeviceMemory::OnMark on_mark) const {
  return name_.is_host() ? nullptr : trainer::make_device_memory(name_.kind, *name_.number, std::move(on_mark));
}

Result<trainer::TrainResult> WorkerDevice::train(const trainer::TrainOptions& options, const trainer::DataSource& data,
                                                 trainer::Transport& transport, trainer::TrainHooks hooks,
                                                 DeviceWork* work) const {
  if (name_.is_host()) return trainer::train(options, data, transport, hooks);
  // Forgotten last: what is made below waits for the device when it ends.
  const auto forget = [](DeviceWork* done) { done->forget(); };
  const std::unique_ptr<DeviceWork, decltype(forget)> forgotten(work, forget);
  const auto memory = make_memory([work](trainer::DeviceMemory::Work kind, const trainer::Mark& mark) {
    if (work != nullptr) work->given(kind, mark);
  });
  const auto staged = make_staged_transport(transport, *memory);
  hooks.device = memory.get();
  auto result = trainer::train(options, data, *staged, hooks);
  // A group that stopped by itself has left the transport unusable. Otherwise peers may still need the last frames; one
  // that cannot have them any more is no failure of a run that has all it wanted.
  if (result && result->end != trainer::RunEnd::kGroupStop) static_cast<void>(staged->flush(kFlushPatience));
  return result;
}

}  // namespace everstep::launcher
