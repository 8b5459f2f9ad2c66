#include <utility>

#include "base/log_line.h"
#include "elastic/brain/situation.h"
#include "elastic/brain/worker_agent.h"

namespace everstep::elastic {

MemberRecord WorkerAgent::wanted_record() const {
  MemberRecord record = options_.self;
  record.state = warmed_ ? MemberState::kReady : MemberState::kWarming;
  if (leaving_) {
    record.state = MemberState::kLeaving;
    record.leave_reason = leaving_->reason;
    record.leave_ms = leaving_->within_ms;
  }
  return record;
}

WorkerAgent::Pending WorkerAgent::registration() const {
  const std::string key = options_.keys.member(id());
  const std::string text = to_text(wanted_record());
  Txn txn{{is_absent(key), has_value(options_.keys.spec(), options_.spec)},
          {put(key, text, options_.lease)},
          {get(options_.keys.spec()), get(key)}};
  return {0, Write::kRegister, std::move(txn), text, std::nullopt};
}

WorkerAgent::Pending WorkerAgent::member_update(const View& view) const {
  const std::string key = options_.keys.member(id());
  const std::string text = to_text(wanted_record());
  Txn txn{{created_at(key, member_created_)}, {put(key, text, options_.lease)}};
  const std::string request = options_.keys.drain_request(id());
  if (view.find(request) != nullptr) txn.then.push_back(remove(request));
  return {0, Write::kMember, std::move(txn), text, std::nullopt};
}

std::optional<WorkerAgent::Pending> WorkerAgent::generation_write(Write kind, std::string key,
                                                                  std::string value) const {
  Txn txn{{modified_at(options_.keys.generation(), part_->modified)},
          {put(std::move(key), std::move(value), options_.lease)}};
  return Pending{0, kind, std::move(txn), {}, std::nullopt};
}

// For people: who is given up, and why.
std::string WorkerAgent::loss_text(const std::string& event, const Lost& lost, const MemberRecord& member) const {
  LogLine line(event);
  line.add("worker", member.name).add("host", member.host).add("address", member.address).add("reason", lost.reason);
  line.add("hint", "its log says why; if it still runs, look at the network between " + options_.self.host + " and it");
  return line.text();
}

// Both keys go in one transaction, so that nobody sees a leader that is no member.
std::optional<WorkerAgent::Pending> WorkerAgent::eviction(const View& view) {
  const Keys& keys = options_.keys;
  for (Lost& lost : part_->lost) {
    const KeyValue* member = view.find(keys.member(lost.id));
    if (!lost.dead || member == nullptr || lost.tried_at == view.revision()) continue;
    lost.tried_at = view.revision();
    // Of two that take each other for dead only one is evicted.
    Txn txn{{modified_at(keys.generation(), part_->modified), created_at(keys.member(id()), member_created_),
             created_at(member->key, member->created)},
            {remove(member->key)}};
    const auto leader = read_leader(view, keys);
    if (leader && leader->id == lost.id) {
      txn.compares.push_back(created_at(keys.leader(), view.created(keys.leader())));
      txn.then.push_back(remove(keys.leader()));
    }
    const auto record = parse_member(member->value);
    const std::string told = loss_text("evicted", lost, record ? *record : MemberRecord{});
    return Pending{0, Write::kEvict, std::move(txn), told, std::nullopt};
  }
  return std::nullopt;
}

std::optional<WorkerAgent::Pending> WorkerAgent::next_write(const View& view) {
  const Keys& keys = options_.keys;
  if (!registered_) return registration();
  if (to_text(wanted_record()) != member_text_) return member_update(view);
  if (part_) {
    const Attempt& attempt = part_->record.roster.attempt;
    if (auto evict = eviction(view)) return evict;
    for (Lost& lost : part_->lost) {
      if (lost.dead || lost.tried_at >= 0) continue;
      lost.tried_at = view.revision();
      const auto record = read_member(view, keys, lost.id);
      decide(Note{loss_text("suspected", lost, record ? *record : MemberRecord{})},
             "suspects a worker: " + lost.reason);
      return generation_write(Write::kSuspect, keys.suspect(attempt, lost.id, id()),
                              to_text(SuspectRecord{false, lost.reason}));
    }
    if (part_->held && !part_->has_written(Write::kHeld)) {
      return generation_write(Write::kHeld, keys.held(attempt, id()), to_text(*part_->held));
    }
    if (part_->promise && part_->is_running() && !part_->has_written(Write::kPromise)) {
      return generation_write(Write::kPromise, keys.promise(attempt, id()), to_text(PromiseRecord{*part_->promise}));
    }
    if (part_->first_update && part_->is_running() && !part_->has_written(Write::kReady)) {
      return generation_write(Write::kReady, keys.ready(attempt, id()), "trains\n");
    }
    if (part_->handed_over && !part_->has_written(Write::kReady)) {
      auto write = generation_write(Write::kReady, keys.ready(attempt, id()), "handed over\n");
      write->txn.then.front().lease = 0;  // says so when this worker has left
      return write;
    }
  }
  if (!proposal_) return std::nullopt;
  const auto link = links_.find(proposal_->attempt);
  if (link == links_.end() || link->second == Link::kConnecting || prepared_ == proposal_->attempt) return std::nullopt;
  const bool connected = link->second == Link::kUp;
  const std::string value = to_text(PreparedRecord{connected, connected ? "" : link_errors_[proposal_->attempt]});
  Txn txn{{modified_at(keys.proposal(), proposal_modified_)},
          {put(keys.prepared(proposal_->attempt, id()), value, options_.lease)}};
  prepared_ = proposal_->attempt;
  return Pending{0, Write::kPrepared, std::move(txn), to_string(proposal_->attempt), std::nullopt};
}

void WorkerAgent::write_next(const View& view, Tick now) {
  if (pending_ && pending_->retry_at && now >= *pending_->retry_at) {
    pending_->retry_at.reset();
    decision_.effects.emplace_back(Send{pending_->request, pending_->txn});
  } else if (pending_ && pending_->retry_at) {
    wake(*pending_->retry_at);
  } else if (!pending_) {
    pending_ = next_write(view);
    if (!pending_) return;
    pending_->request = ++requests_;
    decision_.effects.emplace_back(Send{pending_->request, pending_->txn});
  }
}

void WorkerAgent::on_written(const Pending& write, const TxnReply& reply) {
  if (write.kind == Write::kRegister) {
    registered_ = true;
    member_created_ = reply.revision;
    member_text_ = write.subject;
    decide(Note{LogLine("registered").add("worker", to_string(id())).text()}, "registered");
  }
  if (write.kind == Write::kMember) member_text_ = write.subject;
  if (write.kind == Write::kEvict && reply.succeeded) decide(Note{write.subject}, "evicts a worker");
  const bool of_part = write.kind == Write::kHeld || write.kind == Write::kPromise || write.kind == Write::kReady;
  const bool still_obeyed = part_ && write.txn.compares.front().revision == part_->modified;
  if (of_part && still_obeyed) part_->written.push_back(write.kind);
}

void WorkerAgent::on_refused(const Pending& write, const TxnReply& reply) {
  if (write.kind == Write::kRegister) return on_registration_refused(write, reply);
  if (write.kind == Write::kMember) return rejoin("evicted: its member key is gone");
  // The generation has moved on: nobody is interested any more. The view will show it.
  on_written(write, reply);
}

void WorkerAgent::on_registration_refused(const Pending& write, const TxnReply& reply) {
  const auto& spec = reply.reads.at(0);
  const auto& member = reply.reads.at(1);
  if (!member.empty() && member.front().value == write.subject) {
    registered_ = true;  // an earlier try did it
    member_created_ = member.front().created;
    member_text_ = write.subject;
    return;
  }
  if (spec.empty()) {
    return leave(not_found("there is no such job: nobody has written its spec", "start it with everstep train"));
  }
  if (spec.front().value != options_.spec) {
    return leave(invalid_argument("this worker's configuration differs from the job's",
                                  "start it with the same program, configuration and data"));
  }
  leave(Error{ErrorCode::kInternal, "another process is registered under the id " + to_string(id()), {}});
}

}  // namespace everstep::elastic
