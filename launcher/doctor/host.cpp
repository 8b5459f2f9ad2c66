#include "launcher/doctor/host.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/long_work.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;

constexpr std::array kPrefixes{"CUDA_", "CUBLAS_", "CUDNN_",  "NCCL_", "NVIDIA_", "TORCH_", "PYTORCH_",
                               "OMP_",  "MKL_",    "ONEDNN_", "DNNL_", "ATEN_",   "MALLOC_"};
constexpr std::array kNames{"LD_LIBRARY_PATH",       "LD_PRELOAD",    "XDG_RUNTIME_DIR", "TMPDIR",
                            "ETCD_UNSUPPORTED_ARCH", "GLIBC_TUNABLES"};

bool matters(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view one : kNames) {
    if (name == one) return true;
  }
  return false;
}

Json environment() {
  Json json = Json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (matters(name) && name.size() < text.size()) json.set(name, text.substr(name.size() + 1));
  }
  return json;
}

// Empty: there is no such file.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return std::string(trimmed(line.substr(line.find(':') + 1)));
  }
  return "unknown processor";
}

}  // namespace

std::string processor_text() {
  return processor_name() + ", " + counted(std::thread::hardware_concurrency(), "core", "cores") + ", " +
         size_text(static_cast<std::uint64_t>(host_memory_bytes()));
}

Json host_json() {
  utsname system{};
  ::uname(&system);
  Json json = Json::object();
  json.set("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  json.set("processor", processor_text());
  const std::string driver = first_line("/proc/driver/nvidia/version");
  json.set("driver", driver.empty() ? Json(nullptr) : Json(driver));
  return json.set("environment", environment());
}

}  // namespace everstep::launcher::doctor
