#include "elastic/sim/kv_model.h"

#include <algorithm>
#include <utility>

namespace everstep::elastic {
namespace {

bool takes_prefix(const KvOp& op) { return op.kind == KvOp::Kind::kDeletePrefix || op.kind == KvOp::Kind::kList; }

bool touches(const KvOp& op, std::string_view key) {
  return takes_prefix(op) ? key.starts_with(op.key) : op.key == key;
}

// etcd takes no transaction that would write a key and change it again.
bool changes_twice(const std::vector<KvOp>& ops, std::size_t writer) {
  for (std::size_t other = 0; other < ops.size(); ++other) {
    if (other != writer && !reads(ops[other]) && touches(ops[other], ops[writer].key)) return true;
  }
  return false;
}

Status check_form(const std::vector<KvOp>& ops) {
  if (ops.size() > kMostOps)
    return invalid_argument("a transaction with " + std::to_string(ops.size()) + " operations");
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (ops[at].key.empty() && !takes_prefix(ops[at])) return invalid_argument("a transaction with an empty key");
    if (ops[at].kind == KvOp::Kind::kPut && changes_twice(ops, at)) {
      return invalid_argument("a transaction that changes " + ops[at].key + " twice");
    }
  }
  return {};
}

Error lease_is_gone(LeaseId lease) { return not_found("the lease " + std::to_string(lease) + " is gone"); }

}  // namespace

Result<TxnReply> KvModel::apply(const Txn& txn) {
  if (txn.compares.size() > kMostOps) return invalid_argument("a transaction with too many compares");
  EVERSTEP_TRY(check_form(txn.then));
  EVERSTEP_TRY(check_form(txn.otherwise));

  TxnReply reply;
  reply.succeeded = std::all_of(txn.compares.begin(), txn.compares.end(), [&](const auto& it) { return holds(it); });
  const std::vector<KvOp>& branch = reply.succeeded ? txn.then : txn.otherwise;
  EVERSTEP_TRY(check(branch));
  const Revision now = revision_ + 1;
  for (const KvOp& op : branch) reply.reads.push_back(run(op, now));
  advance_to(now);
  reply.revision = revision_;
  return reply;
}

LeaseId KvModel::grant() {
  leases_.insert(++newest_lease_);
  return newest_lease_;
}

Status KvModel::expire(LeaseId lease) {
  if (leases_.erase(lease) == 0) return lease_is_gone(lease);
  std::vector<std::string> keys;
  for (const auto& [key, item] : items_) {
    if (item.lease == lease) keys.push_back(key);
  }
  const Revision now = revision_ + 1;
  for (const std::string& key : keys) remove(key, now);
  advance_to(now);
  return {};
}

std::optional<std::vector<WatchEvent>> KvModel::events_after(Revision since, std::string_view prefix) const {
  if (since < compacted_) return std::nullopt;
  std::vector<WatchEvent> events;
  const auto first = std::upper_bound(history_.begin(), history_.end(), since,
                                      [](Revision wanted, const Happened& it) { return wanted < it.revision; });
  for (auto it = first; it != history_.end(); ++it) {
    if (it->event.item.key.starts_with(prefix)) events.push_back(it->event);
  }
  return events;
}

void KvModel::compact(Revision revision) {
  compacted_ = std::max(compacted_, std::min(revision, revision_));
  std::erase_if(history_, [&](const Happened& happened) { return happened.revision <= compacted_; });
}

bool KvModel::holds(const Compare& compare) const {
  const auto found = items_.find(compare.key);
  const bool is_there = found != items_.end();
  switch (compare.field) {
    case Compare::Field::kCreated:
      return (is_there ? found->second.created : 0) == compare.revision;
    case Compare::Field::kModified:
      return (is_there ? found->second.modified : 0) == compare.revision;
    case Compare::Field::kValue:
      return is_there && found->second.value == compare.value;
  }
  return false;
}

Status KvModel::check(const std::vector<KvOp>& ops) const {
  for (const KvOp& op : ops) {
    if (op.kind == KvOp::Kind::kPut && op.lease != 0 && !has_lease(op.lease)) return lease_is_gone(op.lease);
  }
  return {};
}

std::vector<KeyValue> KvModel::below(std::string_view prefix) const {
  std::vector<KeyValue> found;
  for (auto it = items_.lower_bound(prefix); it != items_.end() && it->first.starts_with(prefix); ++it) {
    found.push_back(it->second);
  }
  return found;
}

std::vector<KeyValue> KvModel::run(const KvOp& op, Revision now) {
  switch (op.kind) {
    case KvOp::Kind::kPut:
      put(op, now);
      return {};
    case KvOp::Kind::kDelete:
      remove(op.key, now);
      return {};
    case KvOp::Kind::kDeletePrefix:
      for (const KeyValue& item : below(op.key)) remove(item.key, now);
      return {};
    case KvOp::Kind::kGet: {
      const auto found = items_.find(op.key);
      return found == items_.end() ? std::vector<KeyValue>{} : std::vector<KeyValue>{found->second};
    }
    case KvOp::Kind::kList:
      return below(op.key);
  }
  return {};
}

void KvModel::put(const KvOp& op, Revision now) {
  KeyValue& item = items_[op.key];
  item = {op.key, op.value, item.created == 0 ? now : item.created, now, op.lease};
  history_.push_back({now, {false, item}});
}

void KvModel::remove(const std::string& key, Revision now) {
  const auto found = items_.find(key);
  if (found == items_.end()) return;
  history_.push_back({now, {true, {key, {}, 0, now, 0}}});
  items_.erase(found);
}

// Only what changes something has a revision of its own.
void KvModel::advance_to(Revision now) {
  if (!history_.empty() && history_.back().revision == now) revision_ = now;
}

}  // namespace everstep::elastic
