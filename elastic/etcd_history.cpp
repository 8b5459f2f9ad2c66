#include "elastic/etcd_history.h"

#include <algorithm>

#include "base/text.h"

namespace everstep::elastic {

Status EtcdHistory::check_cluster(std::uint64_t cluster, const std::string& url) {
  if (!cluster_) cluster_ = cluster;
  if (*cluster_ == cluster) return {};
  return Error{ErrorCode::kDataLoss,
               "etcd at " + url + " belongs to the cluster " + hex_text(cluster) + ", not to " + hex_text(*cluster_) +
                   " as before",
               "give only the endpoints of one cluster; if etcd was set up anew, everstep resume starts the job anew "
               "from a checkpoint"};
}

Status EtcdHistory::check_revision(Revision revision, Revision before, const std::string& url) {
  if (revision < before) {
    return Error{ErrorCode::kDataLoss,
                 "etcd at " + url + " went back in time: it is at revision " + std::to_string(revision) +
                     " and has been at " + std::to_string(before),
                 "it was wiped or restored from an old copy: everstep resume starts the job anew from a checkpoint"};
  }
  newest_ = std::max(newest_, revision);
  return {};
}

}  // namespace everstep::elastic
