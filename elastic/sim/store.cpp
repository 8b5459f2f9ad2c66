#include "elastic/sim/store.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

Error no_answer() { return {ErrorCode::kDeadlineExceeded, "the store did not answer in time", ""}; }
Error not_reached() { return {ErrorCode::kUnavailable, "the store cannot be reached", ""}; }

bool only_reads(const Txn& txn) {
  return txn.compares.empty() && std::all_of(txn.then.begin(), txn.then.end(), [](const KvOp& op) {
           return op.kind == KvOp::Kind::kGet || op.kind == KvOp::Kind::kList;
         });
}

}  // namespace

Tick Store::latency() { return world_.dice().between(kMillisecond / 5, 3 * kMillisecond) * world_.noise.slowness; }

bool Store::is_away() const { return world_.now() < away_until_; }

bool Store::is_reachable(const Process& client) const { return !is_away() && !client.is_cut_from_store(); }

void Store::transact(Process& client, Txn txn, Tick deadline, const Done& done) {
  const bool reads = only_reads(txn);
  send(
      client, [this, reads, txn = std::move(txn)] { return reads ? read(txn) : execute(txn); }, deadline, reads, done);
}

void Store::send(Process& client, const std::function<Result<TxnReply>()>& execute, Tick deadline, bool only_reads,
                 const Done& done) {
  const Noise& noise = world_.noise;
  Dice& dice = world_.dice();
  const int number = client.number();
  const std::int64_t identity = identity_;
  if (!is_reachable(client)) {
    const bool fast = dice.one_in(2);
    return answer(client, fast ? not_reached() : no_answer(), fast ? 20 * kMillisecond : deadline, done);
  }
  if (dice.with(noise.request_refused)) return answer(client, not_reached(), latency(), done);
  const bool loses_reply = dice.with(noise.reply_lost);
  const bool is_late = !only_reads && dice.with(noise.request_late);
  if (loses_reply || is_late) world_.faults.add(Fault::kReplyLost);
  const Tick arrives = is_late ? deadline + dice.below(12 * kSecond) : latency();
  if (loses_reply || is_late) answer(client, no_answer(), deadline, done);
  // Once it is on its way it arrives, whatever becomes of the one who sent it.
  world_.queue.after(arrives, [this, number, identity, loses_reply, is_late, deadline, execute, done] {
    Process& sender = *world_.processes[number];
    const bool is_lost = is_away() || identity != identity_;
    if (is_lost && (loses_reply || is_late)) return;
    if (is_lost) return answer(sender, no_answer(), deadline, done);
    Result<TxnReply> reply = execute();
    if (!loses_reply && !is_late) answer(sender, std::move(reply), latency(), done);
  });
}

void Store::answer(Process& client, Result<TxnReply> reply, Tick after, const Done& done) {
  client.later(after, [this, &client, reply = std::move(reply), done] {
    if (reply && !client.recognises(identity_)) {
      return done(Error{ErrorCode::kDataLoss, "the answers come from another cluster", ""});
    }
    done(reply);
  });
}

Result<TxnReply> Store::read(const Txn& txn) {
  auto reply = execute(txn);
  if (!reply) return reply;
  std::vector<TxnReply>& old = old_reads_[txn.then.front().key];
  if (!old.empty() && world_.dice().with(world_.noise.stale_read)) {
    world_.faults.add(Fault::kStaleRead);
    return old[world_.dice().below(std::ssize(old))];
  }
  constexpr std::size_t kKept = 6;
  if (old.size() == kKept) old.erase(old.begin());
  old.push_back(*reply);
  return reply;
}

Result<TxnReply> Store::execute(const Txn& txn) {
  const Txn sent = mutated(world_.mutation, world_.keys, txn);
  const Revision before = model_.revision();
  const Oracle::Before seen = world_.oracle.look(sent);
  auto reply = model_.apply(sent);
  if (!reply || model_.revision() == before) return reply;
  if (reply->succeeded) world_.oracle.check(sent, seen);
  changed();
  return reply;
}

std::optional<KeyValue> Store::find(const std::string& key) {
  const auto reply = model_.apply({{}, {elastic::get(key)}});
  if (reply->reads.front().empty()) return std::nullopt;
  return reply->reads.front().front();
}

std::vector<KeyValue> Store::list(const std::string& prefix) {
  return model_.apply({{}, {elastic::list(prefix)}})->reads.front();
}

// ---- leases ----

void Store::grant(Process& client, Tick ttl, Tick deadline, const std::function<void(Result<LeaseId>)>& done) {
  const auto execute = [this, ttl]() -> Result<TxnReply> {
    const LeaseId id = model_.grant();
    leases_[id] = {ttl, world_.now() + ttl};
    watch_lease(id);
    TxnReply reply;
    reply.revision = id;
    return reply;
  };
  send(client, execute, deadline, true, [done](const Result<TxnReply>& reply) {
    done(reply ? Result<LeaseId>(reply->revision) : Result<LeaseId>(reply.error()));
  });
}

void Store::renew(Process& client, LeaseId lease, Tick deadline, const std::function<void(Status)>& done) {
  const auto execute = [this, lease]() -> Result<TxnReply> {
    const auto found = leases_.find(lease);
    if (found == leases_.end() && !world_.dice().with(world_.noise.lease_lie)) return not_found("the lease is gone");
    if (found != leases_.end()) found->second.expires = world_.now() + found->second.ttl;
    return TxnReply{};
  };
  send(client, execute, deadline, true,
       [done](const Result<TxnReply>& reply) { done(reply ? Status() : Status(reply.error())); });
}

void Store::revoke(Process& client, LeaseId lease) {
  const auto execute = [this, lease]() -> Result<TxnReply> {
    expire(lease);
    return TxnReply{};
  };
  send(client, execute, kSecond, true, [](const Result<TxnReply>&) {});
}

void Store::expire(LeaseId lease) {
  if (leases_.erase(lease) == 0) return;
  const Revision before = model_.revision();
  (void)model_.expire(lease);
  if (model_.revision() != before) changed();
}

// Servers look at leases now and then, so they end a little late.
void Store::watch_lease(LeaseId id) {
  const Tick late = world_.dice().below(500 * kMillisecond);
  const std::int64_t identity = identity_;
  world_.queue.at(leases_.at(id).expires + late, [this, id, identity] {
    const auto found = leases_.find(id);
    if (found == leases_.end() || identity != identity_) return;
    if (!is_away() && world_.now() >= found->second.expires) return expire(id);
    if (is_away()) found->second.expires = away_until_ + found->second.ttl;
    watch_lease(id);
  });
}

// ---- watches ----

void Store::watch(Process& client, std::weak_ptr<WatchListener> listener) {
  auto watcher = std::make_shared<Watcher>();
  watcher->process = client.number();
  watcher->life = client.life();
  watcher->listener = std::move(listener);
  watcher->sent = model_.revision();
  watchers_.push_back(watcher);
  schedule(watcher, latency());
}

void Store::changed() {
  if (world_.dice().with(world_.noise.compaction)) model_.compact(model_.revision());
  std::erase_if(watchers_, [](const auto& watcher) { return watcher->listener.expired(); });
  for (const auto& watcher : watchers_) {
    if (!watcher->is_scheduled) schedule(watcher, latency());
  }
}

void Store::schedule(const std::shared_ptr<Watcher>& watcher, Tick delay) {
  watcher->is_scheduled = true;
  Process& process = *world_.processes[watcher->process];
  if (process.life() != watcher->life) return;
  process.later(delay, [this, watcher] { deliver(watcher); });
}

void Store::deliver(const std::shared_ptr<Watcher>& watcher) {
  const auto listener = watcher->listener.lock();
  if (!listener) return;
  if (!is_reachable(*world_.processes[watcher->process])) {
    watcher->has_gap = true;
    return schedule(watcher, 200 * kMillisecond);
  }
  watcher->is_scheduled = false;
  auto events = model_.events_after(watcher->sent, world_.keys.live());
  if (!events) world_.faults.add(Fault::kCompaction);
  watcher->sent = model_.revision();
  if (std::exchange(watcher->has_gap, false) || !events) return listener->on_gap();
  if (events->empty()) return;
  if (world_.dice().with(world_.noise.watch_wrong)) {
    world_.faults.add(Fault::kWatchEventsWrong);
    const std::int64_t how = world_.dice().below(3);
    if (how == 0) events->erase(events->begin() + world_.dice().below(std::ssize(*events)));
    if (how == 1) listener->on_events(*events);
    if (how == 2) events->insert(events->end(), watcher->last.begin(), watcher->last.end());
  }
  watcher->last = *events;
  listener->on_events(*events);
}

// ---- faults ----

void Store::go_away(Tick until) {
  away_until_ = std::max(away_until_, until);
  for (auto& [id, lease] : leases_) lease.expires = std::max(lease.expires, away_until_ + lease.ttl);
  for (const auto& watcher : watchers_) watcher->has_gap = true;
}

void Store::replace(bool by_snapshot) {
  ++identity_;
  KvModel model;
  if (by_snapshot && snapshot_) model = *snapshot_;
  model_ = std::move(model);
  leases_.clear();
  old_reads_.clear();
  for (const auto& watcher : watchers_) watcher->has_gap = true;
  changed();
}

void Store::reset() {
  snapshot_.reset();
  replace(false);
}

}  // namespace everstep::elastic::sim
