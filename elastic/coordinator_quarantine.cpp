// Hosts whose workers die again and again.
#include <algorithm>
#include <utility>

#include "base/log_line.h"
#include "elastic/coordinator.h"

namespace everstep::elastic {
namespace {

constexpr std::int64_t kLongest = 600;  // seconds
constexpr int kMostDoublings = 10;

}  // namespace

void Coordinator::track_losses(const Situation& seen, Tick now) {
  for (const auto& [id, record] : last_members_) {
    if (seen.has(id) || record.state == MemberState::kLeaving) continue;
    std::vector<Tick>& deaths = deaths_[record.host];
    deaths.push_back(now);
    std::erase_if(deaths, [&](Tick at) { return at < now - options_.quarantine_span; });
    const auto shut_out = shut_out_.find(record.host);
    if (shut_out != shut_out_.end()) shut_out->second.calm_since = std::max(shut_out->second.calm_since, now);
  }
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
    if (!loses_too_many(host)) continue;
    deaths_[host].clear();
    LogLine event("host_shut_out");
    event.add("host", host).add("seconds", record.seconds).add("times", record.strikes);
    decision_.effects.emplace_back(Note{event.text()});
  }
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
    txn.then = {quarantine(seen, host, 1)};
    send(std::move(txn), "host " + host + " lost too many workers");
    return true;
  }
  return false;
}

// One strike more; twice as long each time, but not shorter than that.
KvOp Coordinator::quarantine(const Situation& seen, const std::string& host, std::int64_t shortest) const {
  const auto before = seen.quarantines.find(host);
  QuarantineRecord record;
  record.strikes = before == seen.quarantines.end() ? 1 : before->second.record.strikes + 1;
  record.seconds = std::clamp(std::int64_t{1} << std::min(record.strikes - 1, kMostDoublings), shortest, kLongest);
  return put(options_.keys.quarantine(host), to_text(record));
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
    decision_.effects.emplace_back(Note{LogLine("host_forgiven").add("host", host).text()});
    send(std::move(txn), "host " + host + " has lost no worker for long");
    return true;
  }
  return false;
}

bool Coordinator::is_shut_out(const Situation& seen, const Situation::Member& member, Tick now) const {
  if (seen.generation && seen.generation->group.names(member.record.id)) return false;
  const auto quarantine = shut_out_.find(member.record.host);
  if (quarantine != shut_out_.end() && now < quarantine->second.until) return true;
  const auto back = set_back_.find(member.record.id);
  return back != set_back_.end() && now < back->second;
}

void Coordinator::wake_for_quarantines(Tick now) {
  for (const auto& [host, shut_out] : shut_out_) {
    if (shut_out.until > now) wake(shut_out.until);
  }
}

}  // namespace everstep::elastic
