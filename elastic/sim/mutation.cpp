#include "elastic/sim/mutation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "elastic/records.h"

namespace everstep::elastic::sim {
namespace {

const std::vector<std::pair<Mutation, std::string_view>>& mutation_texts() {
  static const std::vector<std::pair<Mutation, std::string_view>> rows = {
      {Mutation::kCommitWithoutGeneration, "no gen compare in commit"},
      {Mutation::kCommitWithoutHead, "no HEAD compare in commit"},
      {Mutation::kOpenWithoutHead, "no HEAD compare in open"},
      {Mutation::kAckBeforeSync, "ack before fsync"},
      {Mutation::kNameWithoutGeneration, "file name without generation"},
      {Mutation::kRemoveAllButHead, "clean-up of everything but HEAD"},
      {Mutation::kRejoinAsBefore, "rejoin with the old incarnation"},
      {Mutation::kActOnStaleRead, "act on a stale read"},
      {Mutation::kNoDirectorySync, "no directory fsync"},
      {Mutation::kSyncAgain, "fsync retried after EIO"},
      {Mutation::kFrameOfAnyGeneration, "frame without generation check"},
      {Mutation::kHandshakeWithoutNonce, "handshake without nonce"},
      {Mutation::kNeverListAgain, "watch without re-list"},
      {Mutation::kAlwaysRenew, "keep-alive not gated by progress"},
      {Mutation::kWallClock, "wall clock in a deadline"},
      {Mutation::kCursorPerWorker, "data cursor per worker"},
      {Mutation::kSumByArrival, "sum order by arrival"},
      {Mutation::kMomentsNotSaved, "moments not saved"},
      {Mutation::kGradientsDropped, "accumulated gradients dropped at drain"},
      {Mutation::kVersionOffByOne, "weight version off by one after a flush"},
      {Mutation::kSkipsNotSaved, "skipped windows not saved"},
      {Mutation::kSkipSetNotSaved, "skip set not saved"},
      {Mutation::kTimeoutIsFailure, "commit timeout taken as failure"},
      {Mutation::kBlindEviction, "eviction without create_revision compare"},
      {Mutation::kGuardJoinsEarly, "update exchange before the guards have their copies"},
      {Mutation::kOneVersionKept, "one version of copies kept instead of two"},
      {Mutation::kKeptRunAgain, "minibatches that a group kept run again"},
  };
  return rows;
}

bool puts(const Txn& txn, const std::string& key) {
  return std::any_of(txn.then.begin(), txn.then.end(),
                     [&](const KvOp& op) { return op.kind == KvOp::Kind::kPut && op.key == key; });
}

bool evicts(const Txn& txn, const Keys& keys) {
  return std::any_of(txn.then.begin(), txn.then.end(), [&](const KvOp& op) {
    return op.kind == KvOp::Kind::kDelete && op.key.starts_with(keys.members());
  });
}

// In the generation that is opened.
void forget_left_out(Txn& txn) {
  for (KvOp& op : txn.then) {
    auto generation = parse_generation(op.value);
    if (!generation) continue;
    generation->left_out.clear();
    op.value = to_text(*generation);
  }
}

template <typename Condition>
void drop(Txn& txn, Condition condition) {
  txn.compares.erase(std::remove_if(txn.compares.begin(), txn.compares.end(), condition), txn.compares.end());
}

}  // namespace

const std::vector<Mutation>& all_mutations() {
  static const std::vector<Mutation> mutations = [] {
    std::vector<Mutation> all;
    for (const auto& [mutation, text] : mutation_texts()) all.push_back(mutation);
    return all;
  }();
  return mutations;
}

std::string_view to_string(Mutation mutation) {
  for (const auto& [one, text] : mutation_texts()) {
    if (one == mutation) return text;
  }
  return "none";
}

Txn mutated(Mutation mutation, const Keys& keys, Txn txn) {
  const bool commits = puts(txn, keys.head());
  const bool opens = puts(txn, keys.generation());
  if (mutation == Mutation::kCommitWithoutGeneration && commits) {
    drop(txn, [&](const Compare& compare) { return compare.key == keys.generation(); });
  }
  if (mutation == Mutation::kCommitWithoutHead && commits) {
    drop(txn, [&](const Compare& compare) {
      return compare.key == keys.head() || compare.key.starts_with(keys.past_heads());
    });
  }
  if (mutation == Mutation::kOpenWithoutHead && opens) {
    drop(txn, [&](const Compare& compare) { return compare.key == keys.head(); });
  }
  if (mutation == Mutation::kSkipSetNotSaved && opens) forget_left_out(txn);
  if (mutation == Mutation::kActOnStaleRead && opens) {
    drop(txn, [&](const Compare& compare) { return compare.key != keys.leader(); });
  }
  if (mutation == Mutation::kBlindEviction && evicts(txn, keys)) {
    drop(txn, [&](const Compare& compare) { return compare.field == Compare::Field::kCreated; });
  }
  return txn;
}

}  // namespace everstep::elastic::sim
