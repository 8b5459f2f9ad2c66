// Hosts whose workers die again and again, and workers that nobody can connect to.
#include <algorithm>
#include <utility>

#include "elastic/brain/coordinator.h"

namespace everstep::elastic {
namespace {

constexpr std::int64_t kLongest = 600;  // seconds
constexpr int kMostBanDoublings = 10;
constexpr std::int64_t kFirstAfterDeaths = 1;      // seconds
constexpr std::int64_t kFirstWhenUnreachable = 5;  // seconds

}  // namespace

void Coordinator::track_losses(const Situation& seen, Tick now) {
  for (const auto& [id, record] : last_members_) {
    if (seen.has(id) || record.state == MemberState::kLeaving) continue;
    std::vector<Tick>& deaths = deaths_[record.host];
    deaths.push_back(now);
    std::erase_if(deaths, [&](Tick at) { return at < now - options_.quarantine_span; });
    const auto shut_out = shut_out_.find(record.host);
    if (shut_out != shut_out_.end()) shut_out->second.calm_since = std::max(shut_out->second.calm_since, now);
    if (seen.generation && seen.generation->roster.names(id) && seen.ready.empty()) unreached_.insert(record.address);
  }
  if (!seen.ready.empty()) unreached_.clear();  // whoever comes from now on is tried beside the training
  last_members_.clear();
  for (const auto& [id, member] : seen.members) last_members_.emplace(id, member.record);
}

// Losses are forgotten when the store shows what came of them: a transaction that was refused is made again.
void Coordinator::track_quarantines(const Situation& seen, Tick now) {
  std::erase_if(shut_out_, [&](const auto& one) { return !seen.quarantines.contains(one.first); });
  for (const auto& [host, quarantine] : seen.quarantines) {
    ShutOut& shut_out = shut_out_[host];
    if (shut_out.revision == quarantine.modified) continue;
    const QuarantineRecord& record = quarantine.record;
    shut_out = {quarantine.modified, now + record.seconds * kTicksPerSecond, now + record.seconds * kTicksPerSecond};
    tell_of_quarantine(host, record);
  }
}

// Once, by whoever wrote it.
void Coordinator::tell_of_quarantine(const std::string& whom, const QuarantineRecord& record) {
  if (loses_too_many(whom)) {
    deaths_[whom].clear();
    note(LogLine("host_shut_out").add("host", whom).add("seconds", record.seconds).add("times", record.strikes));
  }
  if (unreached_.erase(whom) > 0) {
    note(
        LogLine("worker_set_back")
            .add("address", whom)
            .add("seconds", record.seconds)
            .add("times", record.strikes)
            .add("reason", "it is there, but the others could not connect to it")
            .add("hint", "can their hosts reach this address? see --bind, --advertise, --port-range, and the network"));
  }
}

// A process that died and was started again has another port, unless that is prescribed.
bool Coordinator::is_back_unreached(const Situation& seen, const std::string& address) const {
  return std::ranges::any_of(seen.members, [&](const auto& member) {
    return member.second.record.address == address && !seen.generation->roster.names(member.first);
  });
}

bool Coordinator::loses_too_many(const std::string& host) const {
  const auto deaths = deaths_.find(host);
  return options_.quarantine_deaths > 0 && deaths != deaths_.end() &&
         std::ssize(deaths->second) >= options_.quarantine_deaths;
}

bool Coordinator::write_quarantine(const Situation& seen, Tick now) {
  for (auto& [host, deaths] : deaths_) {
    std::erase_if(deaths, [&](Tick at) { return at < now - options_.quarantine_span; });
    if (!loses_too_many(host)) continue;
    Txn txn = as_leader(seen);
    txn.then = {quarantine(seen, host, kFirstAfterDeaths)};
    send(std::move(txn), "host " + host + " lost too many workers");
    return true;
  }
  for (const std::string& address : unreached_) {
    if (!seen.generation || !is_back_unreached(seen, address)) continue;
    Txn txn = as_leader(seen);
    txn.then = {quarantine(seen, address, kFirstWhenUnreachable)};
    send(std::move(txn), "nobody could connect to " + address);
    return true;
  }
  return false;
}

// One strike more; twice as long each time.
KvOp Coordinator::quarantine(const Situation& seen, const std::string& whom, std::int64_t first_seconds) const {
  const auto before = seen.quarantines.find(whom);
  QuarantineRecord record;
  record.strikes = before == seen.quarantines.end() ? 1 : before->second.record.strikes + 1;
  record.seconds = std::min(first_seconds << std::min(record.strikes - 1, kMostBanDoublings), kLongest);
  return put(options_.keys.quarantine(whom), to_text(record));
}

bool Coordinator::end_quarantine(const Situation& seen, Tick now) {
  for (const auto& [host, shut_out] : shut_out_) {
    const Tick forgiven = shut_out.calm_since + seen.quarantines.at(host).record.strikes * options_.quarantine_span;
    if (now < forgiven) {
      wake(forgiven);
      continue;
    }
    Txn txn = as_leader(seen);
    txn.compares.push_back(modified_at(options_.keys.quarantine(host), shut_out.revision));
    txn.then = {remove(options_.keys.quarantine(host))};
    note(LogLine("host_forgiven").add("host", host));
    send(std::move(txn), host + " has lost no worker for long");
    return true;
  }
  return false;
}

bool Coordinator::is_shut_out(const Situation& seen, const Situation::Member& member, Tick now) const {
  if (seen.generation && seen.generation->roster.names(member.record.id)) return false;
  for (const std::string& whom : {member.record.host, member.record.address}) {
    const auto quarantine = shut_out_.find(whom);
    if (quarantine != shut_out_.end() && now < quarantine->second.until) return true;
  }
  const auto back = set_back_.find(member.record.id);
  return back != set_back_.end() && now < back->second.until;
}

void Coordinator::wake_for_quarantines(Tick now) {
  for (const auto& [host, shut_out] : shut_out_) {
    if (shut_out.until > now) wake(shut_out.until);
  }
}

}  // namespace everstep::elastic
