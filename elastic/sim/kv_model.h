#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// What a KvStore does, without servers, threads or time: the answers are etcd's, leases end when told to.
// A plain value: a copy is a snapshot.
class KvModel {
 public:
  // Errors as of KvStore::transact: kNotFound for a lease that is gone, kInvalidArgument for what etcd refuses.
  Result<TxnReply> apply(const Txn& txn);

  LeaseId grant();
  bool has_lease(LeaseId lease) const { return leases_.contains(lease); }
  // Ends the lease and deletes its keys at one revision; what revoke() and the passing of time do. kNotFound: it is
  // gone.
  Status expire(LeaseId lease);

  Revision revision() const { return revision_; }

  // Everything that happened to keys with this prefix after `since`, in order. Nothing if that is not known any more.
  std::optional<std::vector<WatchEvent>> events_after(Revision since, std::string_view prefix) const;

  // Forgets what happened up to and including this revision.
  void compact(Revision revision);

 private:
  struct Happened {
    Revision revision = 0;
    WatchEvent event;
  };

  bool holds(const Compare& compare) const;
  Status check(const std::vector<KvOp>& ops) const;
  std::vector<KeyValue> below(std::string_view prefix) const;
  std::vector<KeyValue> run(const KvOp& op, Revision now);
  void put(const KvOp& op, Revision now);
  void remove(const std::string& key, Revision now);
  void advance_to(Revision now);

  std::map<std::string, KeyValue, std::less<>> items_;
  std::set<LeaseId> leases_;
  LeaseId newest_lease_ = 0;
  std::vector<Happened> history_;
  Revision compacted_ = 0;
  Revision revision_ = 1;  // as of an etcd that is new
};

}  // namespace everstep::elastic
