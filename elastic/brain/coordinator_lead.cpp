// Who leads, and when nobody may decide anything.
#include <algorithm>

#include "base/log_line.h"
#include "elastic/brain/coordinator.h"
#include "elastic/brain/situation.h"

namespace everstep::elastic {
namespace {

constexpr Tick kLeadStagger = kTicksPerSecond / 10;    // between those who would like to lead
constexpr Tick kOrphanPatience = 2 * kTicksPerSecond;  // for a leader that is no member to go with its lease

}  // namespace

bool Coordinator::leads(const View& view) const {
  const auto leader = read_leader(view, options_.keys);
  return leader && leader->id == options_.self;
}

// A checkpoint is committed by a generation that is there, so what disagrees with HEAD is an old value, or gen was
// deleted.
bool Coordinator::may_decide(const Situation& seen) {
  const auto is_behind = [&](const HeadRecord& head) {
    return seen.generation ? seen.generation->roster.attempt.generation < head.generation
                           : head.generation >= options_.first_generation;
  };
  const bool is_damaged = seen.is_damaged || (seen.head && is_behind(*seen.head));
  if (is_damaged && !said_damaged_) {
    LogLine event("records_damaged");
    event.add("reason", "gen and HEAD cannot be read, are forged or contradict each other: nothing is decided");
    event.add("hint", "find out who may write to the job's etcd, then everstep job rm, and everstep resume");
    decision_.effects.emplace_back(Note{event.text()});
  }
  said_damaged_ = is_damaged;
  if (is_damaged) state_ = "damaged";
  return !is_damaged;
}

// Those with the smallest ids try first, so that not everybody asks the store at once.
void Coordinator::try_to_lead(const View& view, Tick now) {
  forget();
  if (view.modified(options_.keys.leader()) != 0) return depose_orphan(view, now);
  orphaned_since_.reset();
  const std::string own = options_.keys.member(options_.self);
  const KeyValue* self = view.find(own);
  if (self == nullptr) return;
  if (!vacant_since_) vacant_since_ = now;
  Tick rank = 0;
  for (const KeyValue* member : view.below(options_.keys.members())) rank += member->key < own ? 1 : 0;
  const Tick turn = *vacant_since_ + std::min<Tick>(rank, 10) * kLeadStagger;
  if (now < turn) return wake(turn);
  Txn txn{{is_absent(options_.keys.leader()), created_at(own, self->created)},
          {put(options_.keys.leader(), to_text(LeaderRecord{options_.self, self->created}), options_.lease)}};
  vacant_since_ = now;
  send(std::move(txn), "lead");
}

// The record goes before anybody else leads, so that compares of when it was created tell the new leader from the old.
void Coordinator::depose_orphan(const View& view, Tick now) {
  if (!orphaned_since_) {
    orphaned_since_ = now;
    decision_.effects.emplace_back(LookAgain{});  // its member key may only be missing in this view
  }
  if (now < *orphaned_since_ + kOrphanPatience) return wake(*orphaned_since_ + kOrphanPatience);
  const std::string key = options_.keys.leader();
  Txn txn{{modified_at(key, view.modified(key))}, {remove(key)}};
  const KeyValue* leader = view.find(key);
  const auto record = leader == nullptr ? not_found("it is forged") : parse_leader(leader->value);
  if (record) {  // the store knows best whether that member is there
    const std::string member = options_.keys.member(record->id);
    txn.compares.push_back(created_at(member, view.created(member)));
  }
  orphaned_since_ = now;
  send(std::move(txn), "depose a leader that is no member");
}

}  // namespace everstep::elastic
