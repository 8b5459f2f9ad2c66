#include "launcher/worker/counting_store.h"

#include <array>

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;

}  // namespace

std::string_view to_string(StoreCall call) {
  constexpr std::array<std::string_view, kStoreCalls> kNames = {"membership", "list", "checkpoint", "progress",
                                                                "lease"};
  return kNames.at(static_cast<std::size_t>(call));
}

StoreCall kind_of(const elastic::Txn& txn, const elastic::Keys& keys) {
  const std::string key = txn.then.empty() ? "" : txn.then.front().key;
  if (key.starts_with(keys.acks()) || key == keys.head() || key == keys.abandoned_save()) return StoreCall::kCheckpoint;
  if (key == keys.progress()) return StoreCall::kProgress;
  return key == keys.live() ? StoreCall::kList : StoreCall::kMembership;
}

Result<elastic::TxnReply> CountingStore::transact(const elastic::Txn& txn, milliseconds deadline) {
  on_call_(kind_of(txn, keys_));
  return store_->transact(txn, deadline);
}

Result<elastic::LeaseId> CountingStore::grant(std::chrono::seconds ttl, milliseconds deadline) {
  on_call_(StoreCall::kLease);
  return store_->grant(ttl, deadline);
}

Result<std::chrono::seconds> CountingStore::renew(elastic::LeaseId lease, milliseconds deadline) {
  on_call_(StoreCall::kLease);
  return store_->renew(lease, deadline);
}

Status CountingStore::revoke(elastic::LeaseId lease, milliseconds deadline) {
  on_call_(StoreCall::kLease);
  return store_->revoke(lease, deadline);
}

std::unique_ptr<elastic::Watch> CountingStore::watch(std::string prefix, elastic::WatchSink sink) {
  return store_->watch(std::move(prefix), std::move(sink));
}

}  // namespace everstep::launcher
