#pragma once

#include "elastic/kv_store.h"

namespace everstep::launcher {

// Whether it says that nobody answered, which may be otherwise later.
bool is_silence(const Error& error);

// Sends a transaction again while nobody answers, a few seconds at most. For those that may be executed twice.
Result<elastic::TxnReply> transact_patiently(elastic::KvStore& store, const elastic::Txn& txn);

}  // namespace everstep::launcher
