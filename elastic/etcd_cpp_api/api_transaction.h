#pragma once

#include <etcd/Value.hpp>
#include <etcd/v3/Transaction.hpp>

#include "elastic/kv_store.h"

// Between our values and the library's.
namespace everstep::elastic {

etcdv3::Transaction to_api(const Txn& txn);

KeyValue from_api(const etcd::Value& value);

}  // namespace everstep::elastic
