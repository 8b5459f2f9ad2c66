#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tick.h"
#include "elastic/kv_store.h"
#include "elastic/sim/kv_model.h"

namespace everstep::elastic::sim {

class Process;
class World;

// What hears of changes. Calls come while the process runs.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  virtual void on_events(const std::vector<WatchEvent>& events) = 0;
  virtual void on_gap() = 0;
};

// The store as workers reach it: late, not at all, or without an answer. The model behind it is exact.
class Store {
 public:
  explicit Store(World& world) : world_(world) {}

  // What each call of KvStore does, answered some time later while the caller's process lives.
  using Done = std::function<void(Result<TxnReply>)>;
  void transact(Process& client, Txn txn, Tick deadline, const Done& done);
  void grant(Process& client, Tick ttl, Tick deadline, const std::function<void(Result<LeaseId>)>& done);
  void renew(Process& client, LeaseId lease, Tick deadline, const std::function<void(Status)>& done);
  void revoke(Process& client, LeaseId lease);
  void watch(Process& client, std::weak_ptr<WatchListener> listener);

  // At once and without faults: for the operator, the oracle and the set-up.
  Result<TxnReply> execute(const Txn& txn);
  std::optional<KeyValue> find(const std::string& key);
  std::vector<KeyValue> list(const std::string& prefix);

  bool is_away() const;
  void go_away(Tick until);
  void come_back() { away_until_ = 0; }
  void expire(LeaseId lease);
  void take_snapshot() { snapshot_ = model_; }
  bool has_snapshot() const { return snapshot_.has_value(); }
  void replace(bool by_snapshot);  // else it is empty
  void reset();                    // an operator begins anew

  // Which store this is; clients find out when it is another one.
  std::int64_t identity() const { return identity_; }

 private:
  struct Watcher {
    int process = 0;
    std::uint64_t life = 0;
    std::weak_ptr<WatchListener> listener;
    Revision sent = 0;
    bool is_scheduled = false;
    bool has_gap = true;
    std::vector<WatchEvent> last;
  };
  struct Lease {
    Tick ttl = 0;
    Tick expires = 0;
  };

  bool is_reachable(const Process& client) const;
  Tick latency();
  void send(Process& client, const std::function<Result<TxnReply>()>& execute, Tick deadline, bool only_reads,
            const Done& done);
  void answer(Process& client, Result<TxnReply> reply, Tick after, const Done& done);
  Result<TxnReply> read(const Txn& txn);
  void changed();
  void schedule(const std::shared_ptr<Watcher>& watcher, Tick delay);
  void deliver(const std::shared_ptr<Watcher>& watcher);
  void watch_lease(LeaseId id);

  World& world_;
  KvModel model_;
  std::optional<KvModel> snapshot_;
  std::map<LeaseId, Lease> leases_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  std::map<std::string, std::vector<TxnReply>> old_reads_;  // by what was asked
  Tick away_until_ = 0;
  std::int64_t identity_ = 1;
};

}  // namespace everstep::elastic::sim
