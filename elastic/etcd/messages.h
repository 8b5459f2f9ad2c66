#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elastic/etcd/etcd.pb.h"
#include "elastic/kv_store.h"

// Between our values and etcd's messages.
namespace everstep::elastic {

// The keys from `first` up to, not including, `end`: those with a prefix.
struct KeyRange {
  std::string first;
  std::string end;
};

KeyRange range_of_prefix(std::string_view prefix);

etcdserverpb::TxnRequest to_message(const Txn& txn);

// kDataLoss if the answer does not fit the question.
Result<TxnReply> from_message(const etcdserverpb::TxnResponse& message, const Txn& txn);

std::vector<WatchEvent> from_message(const etcdserverpb::WatchResponse& message);

// Whether neither branch changes anything.
bool is_read_only(const Txn& txn);

}  // namespace everstep::elastic
