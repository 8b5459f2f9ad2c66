#include "launcher/doctor/host.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/cli/build_facts.h"
#include "launcher/cli/child_process.h"
#include "launcher/cli/host.h"
#include "launcher/cli/long_work.h"
#include "launcher/job/device_environment.h"
#include "launcher/job/device_options.h"

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

// Of the program that `everstep train` would start. nullptr: there is none, or it does not say.
Json etcd_version(const std::filesystem::path& directory) {
  constexpr std::chrono::seconds kLimit{10};
  const auto log = directory / "etcd-version.log";
  auto program = ChildProcess::start({"etcd", "--version"}, log);
  if (!program || !program->ends_within(kLimit)) return nullptr;
  const std::string line = first_line(log.c_str());
  return line.empty() ? Json(nullptr) : Json(line);
}

Json build_json() {
  const BuildFacts& facts = build_facts();
  Json json = Json::object().set("commit", facts.commit).set("preset", facts.preset).set("type", facts.type);
  return json.set("compiler", facts.compiler).set("flags", facts.flags);
}

}  // namespace

Json worker_variables(const std::string& kind) {
  Json json = Json::object();
  for (const auto& [name, value] : device_variables(kind, kNcclTransport, {})) {
    const char* set = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    json.set(name, set == nullptr ? value : std::string(set));
  }
  return json;
}

std::string processor_text() {
  return processor_name() + ", " + counted(std::thread::hardware_concurrency(), "core", "cores") + ", " +
         size_text(static_cast<std::uint64_t>(host_memory_bytes()));
}

Json host_json(const std::filesystem::path& directory) {
  utsname system{};
  ::uname(&system);
  Json json = Json::object().set("build", build_json());
  json.set("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  json.set("processor", processor_text());
  const std::string driver = first_line("/proc/driver/nvidia/version");
  json.set("driver", driver.empty() ? Json(nullptr) : Json(driver));
  json.set("etcd", etcd_version(directory));
  return json.set("environment", environment());
}

}  // namespace everstep::launcher::doctor
