#pragma once

#include <memory>
#include <string>

#include "elastic/etcd_cpp_api/api_clients.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// A watch with a thread of its own, beside the library's. It starts at the revision that the server has, and says so
// with on_gap. The library tells neither that a server is silent nor that it lost its leader; that is found by asking.
std::unique_ptr<Watch> start_api_watch(std::shared_ptr<ApiClients> clients, std::string prefix, WatchSink sink);

}  // namespace everstep::elastic
