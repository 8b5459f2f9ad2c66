#include "elastic/etcd/messages.h"

#include "elastic/etcd_call.h"

namespace everstep::elastic {
namespace {

KeyValue from_message(const etcdserverpb::KeyValue& message) {
  return {message.key(), message.value(), message.create_revision(), message.mod_revision(), message.lease()};
}

void fill(etcdserverpb::Compare& message, const Compare& compare) {
  message.set_result(etcdserverpb::Compare::EQUAL);
  message.set_key(compare.key);
  switch (compare.field) {
    case Compare::Field::kCreated:
      message.set_target(etcdserverpb::Compare::CREATE);
      message.set_create_revision(compare.revision);
      break;
    case Compare::Field::kModified:
      message.set_target(etcdserverpb::Compare::MOD);
      message.set_mod_revision(compare.revision);
      break;
    case Compare::Field::kValue:
      message.set_target(etcdserverpb::Compare::VALUE);
      message.set_value(compare.value);
      break;
  }
}

// RangeRequest or DeleteRangeRequest.
template <typename Message>
void fill_prefix(Message& message, std::string_view prefix) {
  KeyRange range = range_of_prefix(prefix);
  message.set_key(std::move(range.first));
  message.set_range_end(std::move(range.end));
}

void fill(etcdserverpb::RequestOp& message, const KvOp& op) {
  switch (op.kind) {
    case KvOp::Kind::kPut:
      message.mutable_request_put()->set_key(op.key);
      message.mutable_request_put()->set_value(op.value);
      message.mutable_request_put()->set_lease(op.lease);
      break;
    case KvOp::Kind::kDelete:
      message.mutable_request_delete_range()->set_key(op.key);
      break;
    case KvOp::Kind::kDeletePrefix:
      fill_prefix(*message.mutable_request_delete_range(), op.key);
      break;
    case KvOp::Kind::kGet:
      message.mutable_request_range()->set_key(op.key);
      break;
    case KvOp::Kind::kList:
      fill_prefix(*message.mutable_request_range(), op.key);
      break;
  }
}

}  // namespace

etcdserverpb::TxnRequest to_message(const Txn& txn) {
  etcdserverpb::TxnRequest message;
  for (const Compare& compare : txn.compares) fill(*message.add_compare(), compare);
  for (const KvOp& op : txn.then) fill(*message.add_success(), op);
  for (const KvOp& op : txn.otherwise) fill(*message.add_failure(), op);
  return message;
}

Result<TxnReply> from_message(const etcdserverpb::TxnResponse& message, const Txn& txn) {
  const std::vector<KvOp>& branch = message.succeeded() ? txn.then : txn.otherwise;
  TxnReply reply{message.succeeded(), message.header().revision(), {}};
  bool fits = branch.size() == static_cast<std::size_t>(message.responses_size());
  for (std::size_t at = 0; fits && at < branch.size(); ++at) {
    const etcdserverpb::ResponseOp& response = message.responses(static_cast<int>(at));
    fits = reads(branch[at]) == response.has_response_range();
    std::vector<KeyValue>& items = reply.reads.emplace_back();
    for (const auto& item : response.response_range().kvs()) items.push_back(from_message(item));
  }
  if (!fits) return Error{ErrorCode::kDataLoss, "etcd's answer to a transaction does not fit what was asked", {}};
  return reply;
}

std::vector<WatchEvent> from_message(const etcdserverpb::WatchResponse& message) {
  std::vector<WatchEvent> events;
  for (const etcdserverpb::Event& event : message.events()) {
    events.push_back({event.type() == etcdserverpb::Event::DELETE, from_message(event.kv())});
  }
  return events;
}

}  // namespace everstep::elastic
