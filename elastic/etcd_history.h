#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// Notices answers from another cluster than before, or from one that was wiped or restored from an old copy: its name
// can be the same as before, but its revisions are lower.
class EtcdHistory {
 public:
  // What an answer to a call that starts now must have reached.
  Revision newest() const { return newest_; }

  // kDataLoss if another cluster answered.
  Status check_cluster(std::uint64_t cluster, const std::string& url);

  // kDataLoss if the answer is older than `before`, which was newest() when the call began.
  Status check_revision(Revision revision, Revision before, const std::string& url);

 private:
  std::optional<std::uint64_t> cluster_;
  Revision newest_ = 0;
};

}  // namespace everstep::elastic
