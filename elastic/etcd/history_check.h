#pragma once

#include <mutex>
#include <string>

#include "base/result.h"
#include "elastic/etcd/etcd.pb.h"
#include "elastic/etcd_history.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// An EtcdHistory for any thread.
class HistoryCheck {
 public:
  Revision newest() const {
    const std::lock_guard lock(mutex_);
    return history_.newest();
  }

  Status check_cluster(const etcdserverpb::ResponseHeader& header, const std::string& url) {
    const std::lock_guard lock(mutex_);
    return history_.check_cluster(header.cluster_id(), url);
  }

  Status check_revision(const etcdserverpb::ResponseHeader& header, Revision before, const std::string& url) {
    const std::lock_guard lock(mutex_);
    return history_.check_revision(header.revision(), before, url);
  }

 private:
  mutable std::mutex mutex_;
  EtcdHistory history_;
};

}  // namespace everstep::elastic
