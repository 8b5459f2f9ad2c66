#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "elastic/keys.h"
#include "elastic/kv_store.h"

namespace everstep::launcher {

// What a worker wants of the store with a call.
enum class StoreCall : std::uint8_t {
  kMembership,  // who takes part in what; what else is not below
  kList,        // the whole view again: every few seconds, and when something may have been missed
  kCheckpoint,  // files that are durable, and HEAD
  kProgress,    // what people are shown
  kLease
};
inline constexpr std::size_t kStoreCalls = 5;
std::string_view to_string(StoreCall call);  // "membership"

// By the first key of its first branch.
StoreCall kind_of(const elastic::Txn& txn, const elastic::Keys& keys);

// Tells of each call before it goes to the store; watches are none. `on_call` comes from any thread.
class CountingStore final : public elastic::KvStore {
 public:
  CountingStore(std::unique_ptr<elastic::KvStore> store, elastic::Keys keys, std::function<void(StoreCall)> on_call)
      : store_(std::move(store)), keys_(std::move(keys)), on_call_(std::move(on_call)) {}

  Result<elastic::TxnReply> transact(const elastic::Txn& txn, std::chrono::milliseconds deadline) override;
  Result<elastic::LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds deadline) override;
  Result<std::chrono::seconds> renew(elastic::LeaseId lease, std::chrono::milliseconds deadline) override;
  Status revoke(elastic::LeaseId lease, std::chrono::milliseconds deadline) override;
  std::unique_ptr<elastic::Watch> watch(std::string prefix, elastic::WatchSink sink) override;

 private:
  std::unique_ptr<elastic::KvStore> store_;
  const elastic::Keys keys_;
  std::function<void(StoreCall)> on_call_;
};

}  // namespace everstep::launcher
