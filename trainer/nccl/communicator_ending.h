#pragma once

#include <chrono>
#include <vector>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {

// Revokes all communicators, so that no kernel waits for a peer any more, then aborts each once. False if that did not
// end within the limit: a thread then still hangs inside NCCL, and only the end of the process frees it.
bool end_communicators(const NcclApi& api, const std::vector<NcclCommunicator>& communicators,
                       std::chrono::milliseconds limit);

}  // namespace everstep::trainer
