#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "elastic/kv_store.h"

namespace everstep::launcher {

// A store that knows how to renew only, as a test says.
class ScriptedStore final : public elastic::KvStore {
 public:
  using Renew = std::function<Result<std::chrono::seconds>(elastic::LeaseId, std::chrono::milliseconds)>;

  explicit ScriptedStore(Renew renew) : renew_(std::move(renew)) {}

  Result<elastic::TxnReply> transact(const elastic::Txn&, std::chrono::milliseconds) override { return unscripted(); }
  Result<elastic::LeaseId> grant(std::chrono::seconds, std::chrono::milliseconds) override { return unscripted(); }
  Result<std::chrono::seconds> renew(elastic::LeaseId lease, std::chrono::milliseconds deadline) override {
    return renew_(lease, deadline);
  }
  Status revoke(elastic::LeaseId, std::chrono::milliseconds) override { return unscripted(); }
  std::unique_ptr<elastic::Watch> watch(std::string, elastic::WatchSink) override { return nullptr; }

 private:
  static Error unscripted() { return {ErrorCode::kInternal, "not scripted", ""}; }

  Renew renew_;
};

}  // namespace everstep::launcher
