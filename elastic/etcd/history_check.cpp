#include "elastic/etcd/history_check.h"

#include <algorithm>

#include "base/text.h"

namespace everstep::elastic {

Revision HistoryCheck::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

Status HistoryCheck::check_cluster(const etcdserverpb::ResponseHeader& header, const std::string& url) {
  const std::lock_guard lock(mutex_);
  if (!cluster_) cluster_ = header.cluster_id();
  if (*cluster_ == header.cluster_id()) return {};
  return Error{ErrorCode::kDataLoss,
               "etcd at " + url + " belongs to the cluster " + hex_text(header.cluster_id()) + ", not to " +
                   hex_text(*cluster_) + " as before",
               "give only the endpoints of one cluster; if etcd was set up anew, start the job anew from a checkpoint"};
}

Status HistoryCheck::check_revision(const etcdserverpb::ResponseHeader& header, Revision before,
                                    const std::string& url) {
  if (header.revision() < before) {
    return Error{ErrorCode::kDataLoss,
                 "etcd at " + url + " went back in time: it is at revision " + std::to_string(header.revision()) +
                     " and has been at " + std::to_string(before),
                 "it was wiped or restored from an old copy: start the job anew from a checkpoint"};
  }
  const std::lock_guard lock(mutex_);
  newest_ = std::max<Revision>(newest_, header.revision());
  return {};
}

}  // namespace everstep::elastic
