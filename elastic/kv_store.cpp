#include "elastic/kv_store.h"

#include <algorithm>
#include <utility>

namespace everstep::elastic {
namespace {

bool all_read(const std::vector<KvOp>& ops) { return std::all_of(ops.begin(), ops.end(), reads); }

}  // namespace

Compare is_absent(std::string key) { return created_at(std::move(key), 0); }

Compare created_at(std::string key, Revision revision) { return {std::move(key), Compare::Field::kCreated, revision}; }

Compare modified_at(std::string key, Revision revision) {
  return {std::move(key), Compare::Field::kModified, revision};
}

Compare has_value(std::string key, std::string value) {
  return {std::move(key), Compare::Field::kValue, 0, std::move(value)};
}

KvOp put(std::string key, std::string value, LeaseId lease) {
  return {KvOp::Kind::kPut, std::move(key), std::move(value), lease};
}

KvOp remove(std::string key) { return {KvOp::Kind::kDelete, std::move(key)}; }
KvOp remove_prefix(std::string prefix) { return {KvOp::Kind::kDeletePrefix, std::move(prefix)}; }
KvOp get(std::string key) { return {KvOp::Kind::kGet, std::move(key)}; }
KvOp list(std::string prefix) { return {KvOp::Kind::kList, std::move(prefix)}; }

bool reads(const KvOp& op) { return op.kind == KvOp::Kind::kGet || op.kind == KvOp::Kind::kList; }

bool is_read_only(const Txn& txn) { return all_read(txn.then) && all_read(txn.otherwise); }

}  // namespace everstep::elastic
