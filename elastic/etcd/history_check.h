#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "elastic/etcd/etcd.pb.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// Notices answers from another cluster than before, or from one that was wiped or restored from an old copy: its name
// can be the same as before, but its revisions are lower. For any thread.
class HistoryCheck {
 public:
  // What an answer to a call that starts now must have reached.
  Revision newest() const;

  // kDataLoss if another cluster answered.
  Status check_cluster(const etcdserverpb::ResponseHeader& header, const std::string& url);

  // kDataLoss if the answer is older than `before`, which was newest() when the call began.
  Status check_revision(const etcdserverpb::ResponseHeader& header, Revision before, const std::string& url);

 private:
  mutable std::mutex mutex_;
  std::optional<std::uint64_t> cluster_;
  Revision newest_ = 0;
};

}  // namespace everstep::elastic
