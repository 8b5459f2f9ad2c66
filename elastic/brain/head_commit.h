#pragma once

#include <string>

#include "elastic/kv_store.h"
#include "elastic/records.h"

namespace everstep::elastic {

// Moves HEAD by transactions, and finds out what became of them: one commit, as a state machine. Compares gen and HEAD
// by the revisions that the committer saw, and the leader.
class HeadCommit {
 public:
  struct Expected {
    Revision generation = 0;  // `gen` was modified then
    Revision head = 0;        // 0: there is none
    Revision leader = 0;      // `leader` was created then
  };

  // `acks`: the prefix of the acknowledgements that this commit makes superfluous; deleted with it. Empty: none.
  HeadCommit(const Keys& keys, Expected expected, const HeadRecord& next, const std::string& acks = {});

  enum class State {
    kSending,    // send transaction() and tell the reply
    kCommitted,  // `next` became HEAD, by this or an earlier try; it may have been followed by others since
    kOutdated,   // as kRefused, but the right to commit is as good as ever: the HEAD that was seen was not the newest
    kRefused,    // it never was HEAD and never will be: the generation or the leadership is over
    kUnknown,  // nobody said what became of a try, and now nobody will: the store refuses, or somebody tampered with it
  };

  State state() const { return state_; }
  const Txn& transaction() const { return txn_; }

  // An unknown outcome leaves it at kSending: the same transaction sent again resolves it, since a refusal also reads
  // the log of HEADs, where an earlier try would show. Only a refusal knows that somebody else commits now: the read of
  // HEAD that came before it may have been stale.
  State on_reply(const Result<TxnReply>& reply);

 private:
  State after_error(ErrorCode code);

  State state_ = State::kSending;
  bool may_have_happened_ = false;  // a try was not answered
  Txn txn_;
  Expected expected_;
  std::string next_;
};

}  // namespace everstep::elastic
