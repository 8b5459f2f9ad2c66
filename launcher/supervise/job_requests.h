#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "elastic/keys.h"
#include "elastic/kv_store.h"

namespace everstep::launcher {

// What people ask of a running job by its keys, from the side of a supervisor. No call waits long, so that etcd's
// outages do not keep the supervisor from its workers: what did not work is tried again by whoever wanted it.
class JobRequests {
 public:
  JobRequests(elastic::KvStore& store, elastic::Keys keys) : store_(store), keys_(std::move(keys)) {}

  // `everstep scale N`: the number, once for each time that it was asked for. What was asked before the first call, or
  // under an older generation than that of then, is none of this supervisor's business.
  std::optional<int> next_scale();

  // The whole job is to stop at the window's end with a checkpoint.
  Status ask_to_stop(const std::string& reason);

  // The worker of that name is to leave. kNotFound: it is not a member (yet).
  Status ask_to_leave(const std::string& name, const std::string& reason);

  // The names of those who were asked to leave, by anybody, and of those who do; nobody if etcd does not say.
  std::set<std::string> leavers();

  // Whether there are members with other names; nothing if etcd does not say.
  std::optional<bool> has_others(const std::set<std::string>& names);
  bool is_finished();
  // Whether all who worked for the job have ended it, as it was asked to.
  bool is_stopped();

  // Whether etcd answered the last call, if only with a refusal.
  bool was_answered() const { return was_answered_; }

 private:
  Result<elastic::TxnReply> transact(const elastic::Txn& txn);

  elastic::KvStore& store_;
  const elastic::Keys keys_;
  std::set<std::uint64_t> scales_;         // requests that were seen
  std::optional<Generation> begun_under_;  // the generation of the first call
  bool was_answered_ = true;
};

}  // namespace everstep::launcher
