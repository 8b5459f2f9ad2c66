#include "elastic/etcd_cpp_api/api_transaction.h"

#include "elastic/etcd_call.h"

namespace everstep::elastic {
namespace {

void add(etcdv3::Transaction& api, const Compare& compare) {
  switch (compare.field) {
    case Compare::Field::kCreated:
      api.add_compare_create(compare.key, compare.revision);
      break;
    case Compare::Field::kModified:
      api.add_compare_mod(compare.key, compare.revision);
      break;
    case Compare::Field::kValue:
      api.add_compare_value(compare.key, compare.value);
      break;
  }
}

bool takes_prefix(const KvOp& op) { return op.kind == KvOp::Kind::kDeletePrefix || op.kind == KvOp::Kind::kList; }

void add(etcdv3::Transaction& api, const KvOp& op, bool to_then) {
  const KeyRange range = takes_prefix(op) ? range_of_prefix(op.key) : KeyRange{op.key, {}};
  if (op.kind == KvOp::Kind::kPut) {
    to_then ? api.add_success_put(op.key, op.value, op.lease) : api.add_failure_put(op.key, op.value, op.lease);
  } else if (reads(op)) {
    to_then ? api.add_success_range(range.first, range.end) : api.add_failure_range(range.first, range.end);
  } else {
    to_then ? api.add_success_delete(range.first, range.end) : api.add_failure_delete(range.first, range.end);
  }
}

}  // namespace

etcdv3::Transaction to_api(const Txn& txn) {
  etcdv3::Transaction api;
  for (const Compare& compare : txn.compares) add(api, compare);
  for (const KvOp& op : txn.then) add(api, op, true);
  for (const KvOp& op : txn.otherwise) add(api, op, false);
  return api;
}

KeyValue from_api(const etcd::Value& value) {
  return {value.key(), value.as_string(), value.created_index(), value.modified_index(), value.lease()};
}

}  // namespace everstep::elastic
