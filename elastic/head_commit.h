#pragma once

#include <string>
#include <vector>

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

  HeadCommit(const Keys& keys, Expected expected, HeadRecord next);

  enum class State {
    kSending,    // send transaction() and tell the reply
    kCommitted,  // `next` is HEAD, by this or an earlier try
    kRefused,    // it is not and never will be
  };

  State state() const { return state_; }
  const Txn& transaction() const { return txn_; }
  State on_reply(const Result<TxnReply>& reply);

 private:
  State state_ = State::kSending;
  Txn txn_;
  std::string next_;
};

}  // namespace everstep::elastic
