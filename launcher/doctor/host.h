#pragma once

#include <filesystem>
#include <string>

#include "storage/json/json.h"

namespace everstep::launcher::doctor {

// What of this host and program may explain a result: commit and build, system, processor, memory, driver, etcd, and
// those variables of the environment that change how GPUs, LibTorch and everstep compute or are found. None that may
// hold a secret. `directory` is for files of ours.
storage::Json host_json(const std::filesystem::path& directory);

// The variables that workers on a kind of device set, as those have them, by --transport=nccl: what is set already
// stays as it is.
storage::Json worker_variables(const std::string& kind);

// "AMD EPYC 7763, 64 cores, 503.7 GiB"
std::string processor_text();

}  // namespace everstep::launcher::doctor
