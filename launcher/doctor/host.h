#pragma once

#include <string>

#include "storage/json/json.h"

namespace everstep::launcher::doctor {

// What of this host may explain a result: system, processor, memory, driver, etcd, and those variables of the
// environment that change how GPUs, LibTorch and everstep compute or are found. None that may hold a secret.
storage::Json host_json();

// "AMD EPYC 7763, 64 cores, 503.7 GiB"
std::string processor_text();

}  // namespace everstep::launcher::doctor
