#include "elastic/brain/situation.h"

#include <algorithm>

namespace everstep::elastic {
namespace {

// What follows the prefix, up to the next slash.
std::optional<WorkerId> id_after(std::string_view key, std::string_view prefix) {
  return parse_worker_id(key.substr(prefix.size()).substr(0, 32));
}

template <typename Record>
std::map<WorkerId, Record> read_by_worker(const View& view, const std::string& prefix,
                                          Result<Record> (*parse)(std::string_view)) {
  std::map<WorkerId, Record> records;
  for (const KeyValue* item : view.below(prefix)) {
    const auto id = id_after(item->key, prefix);
    const auto record = parse(item->value);
    if (id && record) records.emplace(*id, *record);
  }
  return records;
}

template <typename Record>
std::optional<Record> read_one(const View& view, const std::string& key, Result<Record> (*parse)(std::string_view),
                               Revision& modified, bool& is_damaged) {
  modified = view.modified(key);
  if (view.is_forged(key)) is_damaged = true;
  const KeyValue* item = view.find(key);
  if (item == nullptr) return std::nullopt;
  auto record = parse(item->value);
  if (!record) is_damaged = true;
  return record ? std::optional<Record>(*std::move(record)) : std::nullopt;
}

void read_suspicions(const View& view, const std::string& prefix, Situation& situation) {
  for (const KeyValue* item : view.below(prefix)) {
    const auto who = id_after(item->key, prefix);
    const std::string_view key = item->key;
    const auto by = parse_worker_id(key.substr(key.rfind('/') + 1));
    if (who && by) situation.suspicions.emplace(*who, *by);
  }
}

void read_members(const View& view, const Keys& keys, Situation& situation) {
  for (const KeyValue* item : view.below(keys.members())) {
    const auto record = parse_member(item->value);
    if (!record || item->key != keys.member(record->id)) continue;
    situation.members.emplace(record->id, Situation::Member{*record, item->created});
  }
}

// One that was made before the workers of today had been started is none of their business.
bool is_stop_asked(const View& view, const Keys& keys, const std::optional<GenerationRecord>& generation) {
  const KeyValue* item = view.find(keys.stop_request());
  if (item == nullptr) return false;
  const auto request = parse_request(item->value);
  return request && (!generation || request->generation >= generation->heeds_from);
}

}  // namespace

bool Situation::is_leaving(const WorkerId& id) const {
  const auto member = members.find(id);
  return member != members.end() && member->second.record.state == MemberState::kLeaving;
}

std::vector<WorkerId> Situation::live_workers() const {
  std::vector<WorkerId> live;
  if (!generation) return live;
  for (const WorkerId& id : generation->roster.plan.workers) {
    if (has(id)) live.push_back(id);
  }
  return live;
}

Result<MemberRecord> read_member(const View& view, const Keys& keys, const WorkerId& id) {
  const KeyValue* item = view.find(keys.member(id));
  if (item == nullptr) return not_found("there is no member " + to_string(id));
  return parse_member(item->value);
}

std::optional<LeaderRecord> read_leader(const View& view, const Keys& keys) {
  const KeyValue* item = view.find(keys.leader());
  if (item == nullptr) return std::nullopt;
  const auto leader = parse_leader(item->value);
  const bool is_member = leader && view.find(keys.member(leader->id)) != nullptr;
  if (!is_member || view.created(keys.member(leader->id)) != leader->registered) return std::nullopt;
  return *leader;
}

Situation read_situation(const View& view, const Keys& keys) {
  Situation situation;
  read_members(view, keys, situation);
  bool damaged = false;
  situation.generation =
      read_one(view, keys.generation(), &parse_generation, situation.generation_modified, situation.is_damaged);
  situation.head = read_one(view, keys.head(), &parse_head_record, situation.head_modified, situation.is_damaged);
  situation.proposal = read_one(view, keys.proposal(), &parse_roster, situation.proposal_modified, damaged);
  situation.drain = read_one(view, keys.drain(), &parse_drain, situation.drain_modified, damaged);
  situation.leader_created = view.created(keys.leader());
  situation.stop_asked = is_stop_asked(view, keys, situation.generation);
  for (const KeyValue* item : view.below(keys.quarantines())) {
    const auto record = parse_quarantine(item->value);
    if (record) situation.quarantines[item->key.substr(keys.quarantines().size())] = {*record, item->modified};
  }
  if (situation.proposal) {
    situation.prepared = read_by_worker(view, keys.prepared(situation.proposal->attempt), &parse_prepared);
  }
  if (!situation.generation) return situation;
  const Attempt& attempt = situation.generation->roster.attempt;
  if (situation.drain && situation.drain->attempt != attempt) situation.drain.reset();
  situation.promises = read_by_worker(view, keys.promises(attempt), &parse_promise);
  situation.held = read_by_worker(view, keys.held(attempt), &parse_held);
  for (const KeyValue* item : view.below(keys.ready(attempt))) {
    const auto id = id_after(item->key, keys.ready(attempt));
    if (!id) continue;
    const auto& donors = situation.generation->roster.donors;
    const bool is_donor = std::find(donors.begin(), donors.end(), *id) != donors.end();
    (is_donor ? situation.handed_over : situation.ready).insert(*id);
  }
  read_suspicions(view, keys.suspects(attempt), situation);
  Revision written = 0;
  situation.progress = read_one(view, keys.progress(), &parse_progress, written, damaged);
  if (situation.progress && situation.progress->generation != attempt.generation) situation.progress.reset();
  return situation;
}

}  // namespace everstep::elastic
