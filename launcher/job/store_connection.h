#pragma once

#include <memory>

#include "base/result.h"
#include "elastic/kv_store.h"
#include "launcher/job/elastic_options.h"

namespace everstep::launcher {

// Connects to servers that run (kServers) and asks them something, so that a wrong address, a certificate that does not
// fit or a server that does not answer is told here: kUnavailable, which ends a command with 69. kInvalidArgument: a
// certificate file cannot be read or makes no sense.
Result<std::unique_ptr<elastic::KvStore>> connect_store(const EtcdAddress& etcd);
inline Result<std::unique_ptr<elastic::KvStore>> connect_store(const ElasticOptions& options) {
  return connect_store(options.etcd);
}

}  // namespace everstep::launcher
