#include "elastic/sim/oracle.h"

#include <algorithm>

#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

std::optional<HeadDocument> head_of(const std::string& value) {
  const auto record = parse_head_record(value);
  return record ? parse_head_document(record->document) : std::nullopt;
}

}  // namespace

Oracle::Oracle(World& world) : world_(world), reference_(world.seed) {}

void Oracle::violated(const std::string& oracle, const std::string& what) { world_.violated(oracle, what); }

Oracle::Before Oracle::look(const Txn& txn) {
  const Keys& keys = world_.keys;
  const bool matters = std::any_of(txn.then.begin(), txn.then.end(), [&](const KvOp& op) {
    return op.key == keys.head() || op.key == keys.generation() || op.key == keys.leader() ||
           op.key.starts_with(keys.acks()) || op.key.starts_with(keys.members());
  });
  if (!matters || is_paused_) return {};
  return {world_.store.find(keys.generation()), world_.store.find(keys.head()), world_.store.find(keys.leader()),
          world_.store.list(keys.all_held()), true};
}

void Oracle::check(const Txn& txn, const Before& before) {
  if (!before.is_known) return;
  for (const KvOp& op : txn.then) {
    if (op.kind == KvOp::Kind::kPut) check_put(op, before);
  }
  check_deposal(txn, before);
}

void Oracle::check_put(const KvOp& op, const Before& before) {
  const Keys& keys = world_.keys;
  if (op.key == keys.head()) check_head(op, before);
  if (op.key == keys.generation()) check_generation(op, before);
  if (op.key.starts_with(keys.acks())) check_ack(op, before);
}

// ---- HEAD ----

void Oracle::check_head(const KvOp& op, const Before& before) {
  const auto head = head_of(op.value);
  if (!head) return violated("CHAIN", "HEAD cannot be read");
  const auto generation = before.generation ? parse_generation(before.generation->value) : invalid_argument("none");
  if (!generation || generation->roster.attempt.generation != head->name.generation) {
    violated("FENCE", "generation " + std::to_string(head->name.generation.value) + " commits " +
                          to_string(head->name) + " when it is over");
  }
  world_.tell("HEAD", [&] { return "is " + to_string(head->name) + ", commit " + std::to_string(head->sequence); });
  check_links(*head);
  check_committer(*head);
  check_content(*head);
  head_ = head;
  highest_sequence_ = head->sequence;
  by_manifest_[head->manifest] = *head;
  has_resumed_ = false;
  ++commits_;
  check_retained();
}

void Oracle::check_links(const HeadDocument& head) {
  const std::string name = to_string(head.name);
  const std::string before = head_ ? head_->manifest : "-";
  if (head.previous != before && !has_resumed_) violated("CHAIN", name + " does not follow the HEAD before it");
  if (head.sequence <= highest_sequence_) violated("CHAIN", name + " takes a number that was used");
  if (head_ && head.name.generation < head_->name.generation) violated("CHAIN", name + " is of an older generation");
  if (head.parent == "-") {
    if (head_) violated("CHAIN", name + " descends from nothing, though it is not the first");
    return;
  }
  if (head.parent != head.previous) ++fallbacks_;
  const auto parent = by_manifest_.find(head.parent);
  if (parent == by_manifest_.end()) return violated("CHAIN", name + " descends from what was never committed");
  if (parent->second.name.position >= head.name.position) violated("CHAIN", name + " is not further than its parent");
}

// Leadership may pass on within a generation; nobody commits again after another has.
void Oracle::check_committer(const HeadDocument& head) {
  auto& committers = committers_[head.name.generation];
  if (!committers.empty() && committers.back() == head.committer) return;
  if (std::find(committers.begin(), committers.end(), head.committer) != committers.end()) {
    violated("CHAIN", "two committers of generation " + std::to_string(head.name.generation.value) + " take turns");
  }
  committers.push_back(head.committer);
  if (committers.size() == 2) ++shared_generations_;
}

void Oracle::check_content(const HeadDocument& head) {
  const std::string name = to_string(head.name);
  const auto loaded = load_checkpoint(world_.disk, head, true);
  if (!loaded) return violated("RESTORE", name + ": " + loaded.error().message);
  const std::int64_t window = window_of(head.name.position);
  if (loaded->state.version != window) violated("BITS", name + " has version " + std::to_string(loaded->state.version));
  const auto& expected = reference_.at(window);
  for (const auto& [block, state] : loaded->state.blocks) {
    if (state != expected[block]) return violated("BITS", name + ": block " + std::to_string(block) + " is wrong");
  }
  if (loaded->state.skipped != reference_.skipped_before(window))
    violated("BITS", name + ": skipped windows are wrong");
  const auto parent = by_manifest_.find(loaded->manifest.parent);
  std::int64_t next = parent == by_manifest_.end() ? 0 : parent->second.name.position.value;
  for (const Consumed& one : loaded->manifest.consumed) {
    if (one != Consumed{next, next}) {
      return violated("ONCE", name + ": minibatch " + std::to_string(one.sample) + " at position " +
                                  std::to_string(one.position) + ", where " + std::to_string(next) + " was due");
    }
    ++next;
  }
  if (next != head.name.position.value) violated("ONCE", name + ": the ledger ends at " + std::to_string(next));
}

void Oracle::check_retained() {
  std::optional<HeadDocument> at = head_;
  for (int kept = 0; kept < world_.job.keep_last && at; ++kept) {
    if (!damaged_.contains(at->name)) {
      const auto loaded = load_checkpoint(world_.disk, *at, true);
      if (!loaded) return violated("RESTORE", to_string(at->name) + " is kept: " + loaded.error().message);
    }
    const auto parent = by_manifest_.find(at->parent);
    at = parent == by_manifest_.end() ? std::nullopt : std::optional(parent->second);
  }
}

void Oracle::on_resume(const std::optional<HeadDocument>& from, const Traces& traces) {
  head_ = from;
  if (from) by_manifest_[from->manifest] = *from;  // perhaps committed to a store that was not the job's
  highest_sequence_ = traces.sequence;
  newest_generation_ = traces.generation;
  has_resumed_ = true;
}

// ---- generations ----

void Oracle::check_generation(const KvOp& op, const Before& before) {
  const auto record = parse_generation(op.value);
  if (!record) return violated("CHAIN", "gen cannot be read: " + record.error().message);
  const Generation number = record->roster.attempt.generation;
  const std::string name = "generation " + std::to_string(number.value);
  world_.tell("GEN", [&] { return name + ": " + record->reason; });
  if (number <= newest_generation_) violated("FENCE", name + " is opened a second time");
  newest_generation_ = std::max(newest_generation_, number);
  ++generations_;
  const auto head = before.head ? head_of(before.head->value) : std::nullopt;
  const Origin& origin = record->origin;
  if (origin.kind == Origin::Kind::kBeginning && head) violated("CHAIN", name + " begins anew though there is a HEAD");
  if (origin.kind == Origin::Kind::kCheckpoint && (!head || head->manifest != origin.manifest)) {
    violated("CHAIN", name + " does not start from HEAD");
  }
  if (record->from && head && origin.position < head->name.position) violated("CHAIN", name + " starts behind HEAD");
  if (origin.kind == Origin::Kind::kCopies || origin.kind == Origin::Kind::kSums) ++recoveries_;
  if (origin.kind == Origin::Kind::kSums) ++group_stops_;
  for (const Position& position : record->left_out) {
    if (!is_bad_data(world_.seed, position)) violated("ONCE", name + " leaves out a healthy minibatch");
  }
  check_memory(*record, before);
}

// Whoever made an update knows that all had joined its exchange, and with that had all copies of the version before.
void Oracle::check_memory(const GenerationRecord& next, const Before& before) {
  const auto present = before.generation ? parse_generation(before.generation->value) : invalid_argument("none");
  if (!present) return;
  const RosterRecord& roster = present->roster;
  std::map<WorkerId, std::int64_t> newest;  // version, by worker that says what it has
  for (const KeyValue& item : before.held) {
    const auto held = parse_held(item.value);
    if (!held) continue;
    for (const WorkerId& id : roster.plan.workers) {
      const bool is_evicted = !world_.store.find(world_.keys.member(id));
      if (is_evicted || item.key != world_.keys.held(roster.attempt, id)) continue;
      for (const HeldCopy& copy : held->copies) {
        if (copy.owned && copy.of == roster.attempt.generation)
          newest[id] = std::max(newest[id], window_of(copy.position));
      }
    }
  }
  const auto lost = roster.plan.workers.size() - newest.size();
  const auto copies = static_cast<std::size_t>(roster.plan.width) + roster.plan.guards.front().size();
  if (newest.empty() || lost >= copies) return;
  std::int64_t made = 0;
  for (const auto& [id, version] : newest) made = std::max(made, version);
  if (made == window_of(present->origin.position)) return;  // nobody has made an update yet
  const std::int64_t due = made - 1;
  if (window_of(next.origin.position) >= due) return;
  violated("MEMORY", "generation " + std::to_string(next.roster.attempt.generation.value) + " starts at window " +
                         std::to_string(window_of(next.origin.position)) + " though " + std::to_string(newest.size()) +
                         " survivors have window " + std::to_string(due));
}

void Oracle::check_ack(const KvOp& op, const Before& before) {
  const auto record = before.generation ? parse_generation(before.generation->value) : invalid_argument("none");
  const bool is_current = record && op.key.starts_with(world_.keys.acks() + to_string(record->roster.attempt) + "/");
  if (!is_current) violated("FENCE", op.key + " is acknowledged when its generation is over");
}

// A leader goes together with the member that it names, or after it.
void Oracle::check_deposal(const Txn& txn, const Before& before) {
  const KvOp deposal = remove(world_.keys.leader());
  if (!before.leader || std::find(txn.then.begin(), txn.then.end(), deposal) == txn.then.end()) return;
  const auto leader = parse_leader(before.leader->value);
  if (!leader || !world_.store.find(world_.keys.member(leader->id))) return;
  violated("FENCE", "a leader was deposed by a transaction that was aimed at another");
}

}  // namespace everstep::elastic::sim
