#include "elastic/sealed_store.h"

namespace everstep::elastic {

using std::chrono::milliseconds;

Result<TxnReply> SealedStore::transact(const Txn& txn, milliseconds deadline) {
  auto reply = store_->transact(seal_.seal(txn), deadline);
  if (!reply) return reply;
  return seal_.open(std::move(reply).value());
}

Result<LeaseId> SealedStore::grant(std::chrono::seconds ttl, milliseconds deadline) {
  return store_->grant(ttl, deadline);
}

Result<std::chrono::seconds> SealedStore::renew(LeaseId lease, milliseconds deadline) {
  return store_->renew(lease, deadline);
}

Status SealedStore::revoke(LeaseId lease, milliseconds deadline) { return store_->revoke(lease, deadline); }

std::unique_ptr<Watch> SealedStore::watch(std::string prefix, WatchSink sink) {
  WatchSink opened = sink;
  opened.on_events = [seal = seal_, told = std::move(sink.on_events)](const std::vector<WatchEvent>& events) {
    told(seal.open(events));
  };
  return store_->watch(std::move(prefix), std::move(opened));
}

}  // namespace everstep::elastic
