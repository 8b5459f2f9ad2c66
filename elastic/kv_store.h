#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace everstep::elastic {

using Revision = std::int64_t;  // counts the changes of the whole store; 0: never
using LeaseId = std::int64_t;   // 0: none

struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;
  Revision modified = 0;
  LeaseId lease = 0;

  bool operator==(const KeyValue&) const = default;
};

// What must hold for a transaction to take its first branch. A key that is not there was created and modified at 0.
struct Compare {
  enum class Field { kCreated, kModified, kValue };

  std::string key;
  Field field = Field::kModified;
  Revision revision = 0;  // kCreated, kModified
  std::string value{};    // kValue

  bool operator==(const Compare&) const = default;
};

Compare is_absent(std::string key);
Compare created_at(std::string key, Revision revision);
Compare modified_at(std::string key, Revision revision);
Compare has_value(std::string key, std::string value);

struct KvOp {
  enum class Kind { kPut, kDelete, kDeletePrefix, kGet, kList };

  Kind kind = Kind::kGet;
  std::string key;      // kDeletePrefix, kList: the prefix
  std::string value{};  // kPut
  LeaseId lease = 0;    // kPut: the key goes with the lease

  bool operator==(const KvOp&) const = default;
};

KvOp put(std::string key, std::string value, LeaseId lease = 0);
KvOp remove(std::string key);
KvOp remove_prefix(std::string prefix);
KvOp get(std::string key);
KvOp list(std::string prefix);
bool reads(const KvOp& op);

// All compares and one of the branches happen at one instant. etcd takes at most 128 of each (kMostOps).
inline constexpr std::size_t kMostOps = 128;
struct Txn {
  std::vector<Compare> compares;
  std::vector<KvOp> then;
  std::vector<KvOp> otherwise{};

  bool operator==(const Txn&) const = default;
};

// Whether neither branch changes anything.
bool is_read_only(const Txn& txn);

struct TxnReply {
  bool succeeded = false;                    // `then` was taken
  Revision revision = 0;                     // of the store, when it was
  std::vector<std::vector<KeyValue>> reads;  // one per op of the branch; keys ascending; empty for ops that do not read
  std::vector<KeyValue> forged{};            // what `reads` would have held besides: see RecordSeal. Without values

  bool operator==(const TxnReply&) const = default;
};

struct WatchEvent {
  bool deleted = false;
  KeyValue item;        // of a deletion: the key, and `modified` when it went
  bool forged = false;  // something was put there that is not authentic: see RecordSeal. Without the value
};

// Told by a service thread of the store, one call at a time, never after the Watch is gone. Neither may block.
struct WatchSink {
  std::function<void(const std::vector<WatchEvent>& events)> on_events;
  // Events may have been missed (compaction, another server, the start of the watch): list again.
  std::function<void()> on_gap;
};

// Ends the watch when it goes.
class Watch {
 public:
  virtual ~Watch() = default;
};

// A small replicated store, as etcd is one. Calls may come from any thread and return within their deadline (plus
// scheduling). What an error says about the call:
//   kUnavailable        not executed: send it again
//   kDeadlineExceeded   unknown: it may have been executed, or may still be. Read back, or send the same again
//   kNotFound           renew(), revoke(), and put() with a lease: the lease is gone. Not executed
//   kInvalidArgument    not executed, and never will be: refused by the server (too large, no permission)
//   kDataLoss           the answers come from another cluster or from one that went back in time: stop
// Reads may be stale and watch events lost, doubled or old; only the compares of a transaction decide.
class KvStore {
 public:
  virtual ~KvStore() = default;

  virtual Result<TxnReply> transact(const Txn& txn, std::chrono::milliseconds deadline) = 0;

  virtual Result<LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds deadline) = 0;
  // The time that the lease has from now on.
  virtual Result<std::chrono::seconds> renew(LeaseId lease, std::chrono::milliseconds deadline) = 0;
  virtual Status revoke(LeaseId lease, std::chrono::milliseconds deadline) = 0;

  // Changes below the prefix from about now on. Reconnects by itself for as long as it lives; its first call is on_gap.
  virtual std::unique_ptr<Watch> watch(std::string prefix, WatchSink sink) = 0;
};

}  // namespace everstep::elastic
