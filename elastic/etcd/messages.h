#pragma once

#include <vector>

#include "base/result.h"
#include "elastic/etcd/etcd.pb.h"
#include "elastic/kv_store.h"

// Between our values and etcd's messages.
namespace everstep::elastic {

etcdserverpb::TxnRequest to_message(const Txn& txn);

// kDataLoss if the answer does not fit the question.
Result<TxnReply> from_message(const etcdserverpb::TxnResponse& message, const Txn& txn);

std::vector<WatchEvent> from_message(const etcdserverpb::WatchResponse& message);

}  // namespace everstep::elastic
