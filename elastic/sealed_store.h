#pragma once

#include <memory>
#include <utility>

#include "elastic/kv_store.h"
#include "elastic/record_seal.h"

namespace everstep::elastic {

// The store as a job that has a secret sees it: whatever goes out is sealed, and whatever comes in is checked. With the
// seal of a job without one it is the store itself.
class SealedStore final : public KvStore {
 public:
  SealedStore(std::unique_ptr<KvStore> store, RecordSeal seal) : store_(std::move(store)), seal_(std::move(seal)) {}

  Result<TxnReply> transact(const Txn& txn, std::chrono::milliseconds deadline) override;
  Result<LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds deadline) override;
  Result<std::chrono::seconds> renew(LeaseId lease, std::chrono::milliseconds deadline) override;
  Status revoke(LeaseId lease, std::chrono::milliseconds deadline) override;
  std::unique_ptr<Watch> watch(std::string prefix, WatchSink sink) override;

 private:
  std::unique_ptr<KvStore> store_;
  const RecordSeal seal_;
};

}  // namespace everstep::elastic
