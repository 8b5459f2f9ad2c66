#include "elastic/sim/committer.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/commit_term.h"
#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {

void Committer::look(const View& view, Revision leader) {
  const Keys& keys = self_.process().world().keys;
  const KeyValue* item = view.find(keys.generation());
  const Revision opened = item == nullptr ? 0 : item->modified;
  if (term_ && (term_->right().leader != leader || term_->right().generation != opened)) {
    term_.reset();
    taken_.clear();
  }
  if (leader == 0 || item == nullptr) return;
  if (!term_) {
    const auto generation = parse_generation(item->value);
    if (generation) begin(view, *generation, opened, leader);
  }
  if (!term_) return;
  collect(view);
  tell_verdicts();
}

void Committer::begin(const View& view, const GenerationRecord& generation, Revision opened, Revision leader) {
  World& world = self_.process().world();
  std::optional<HeadDocument> found;
  if (const KeyValue* item = view.find(world.keys.head())) {
    const auto record = parse_head_record(item->value);
    found = record ? parse_head_document(record->document) : std::nullopt;
    if (!found) return;
    const auto text = world.disk.read(found->path);
    if (!text || digest_of(*text) != found->manifest) {
      return world.call_operator("HEAD's manifest cannot be read");
    }
  }
  term_ = std::make_shared<CommitTerm>(self_.process(), generation, CommitTerm::Right{opened, leader}, found);
}

void Committer::collect(const View& view) {
  const RosterRecord& roster = term_->generation().roster;
  const std::string prefix = self_.process().world().keys.acks() + to_string(roster.attempt) + "/";
  for (const KeyValue* item : view.below(prefix)) {
    if (!taken_.insert(item->key).second) continue;
    const std::string_view key = item->key;
    const std::string_view rest = key.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    const auto name = parse_checkpoint_name(rest.substr(0, slash));
    const auto id = parse_worker_id(rest.substr(slash + 1));
    const auto ack = parse_ack(item->value);
    if (!name || !id || !ack) continue;
    const auto worker = std::find(roster.plan.workers.begin(), roster.plan.workers.end(), *id);
    if (worker == roster.plan.workers.end()) continue;
    term_->take(*name, static_cast<int>(worker - roster.plan.workers.begin()), *ack);
  }
}

void Committer::tell_verdicts() {
  if (term_->untold.empty()) return;
  const Keys& keys = self_.process().world().keys;
  const CommitTerm::Verdict verdict = term_->untold.front();
  const std::string name = to_string(verdict.name);
  Txn txn{{modified_at(keys.generation(), term_->right().generation)},
          {remove_prefix(keys.acks(term_->generation().roster.attempt, name))}};
  if (!verdict.is_committed) txn.then.push_back(put(keys.abandoned_save(), name));
  self_.transact(txn, [this, term = term_](const Result<TxnReply>& reply) {
    if (!reply || term != term_) return;
    term->untold.erase(term->untold.begin());
    tell_verdicts();
  });
}

}  // namespace everstep::elastic::sim
