#include "trainer/cuda/cuda_devices.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <cuda_runtime_api.h>

#include "base/text.h"

namespace everstep::trainer::cuda {
namespace {

int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int runtime_version() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

Error refused_by(cudaError_t error) {
  const bool is_driver_too_old = error == cudaErrorInsufficientDriver;
  return no_gpu(cudaGetErrorString(error), is_driver_too_old, driver_version(), runtime_version());
}

// As a number; of a part of a GPU (MIG) it is its own.
std::string id_of(const cudaUUID_t& uuid) {
  std::array<std::uint64_t, 2> halves{};
  static_assert(sizeof uuid.bytes == sizeof halves);
  std::memcpy(halves.data(), uuid.bytes, sizeof halves);
  return halves[0] == 0 && halves[1] == 0 ? "" : hex_text(halves[0]) + hex_text(halves[1]);
}

Result<std::vector<DeviceFacts>> list_gpus() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return refused_by(error);
  std::vector<DeviceFacts> gpus;
  for (int number = 0; number < count; ++number) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, number); error != cudaSuccess) {
      return refused_by(error);
    }
    gpus.push_back({properties.name, static_cast<std::int64_t>(properties.totalGlobalMem), {}, id_of(properties.uuid)});
  }
  return gpus;
}

std::optional<std::int64_t> bytes_in_use(int number) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaSetDevice(number) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) return std::nullopt;
  return static_cast<std::int64_t>(total - free);
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Error no_gpu(const std::string& error, bool is_driver_too_old, int driver_version, int runtime_version) {
  if (driver_version == 0) {
    return not_found("no GPU was found: there is no NVIDIA driver", "nvidia-smi shows whether it is installed");
  }
  if (is_driver_too_old) {
    return not_found("the NVIDIA driver is too old: it has CUDA " + version_text(driver_version) +
                         ", and this build needs " + version_text(runtime_version),
                     "install a newer driver");
  }
  return not_found("no GPU was found: " + error, "nvidia-smi lists them; CUDA_VISIBLE_DEVICES may hide some");
}

DeviceKind cuda_devices() {
  DeviceKind kind;
  kind.name = "cuda";
  kind.list = list_gpus;
  kind.provenance = [] {
    return std::vector<std::pair<std::string, std::string>>{{"cuda", version_text(runtime_version())},
                                                            {"cuda-driver", version_text(driver_version())}};
  };
  kind.bytes_in_use = bytes_in_use;
  return kind;
}

}  // namespace everstep::trainer::cuda
