#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "elastic/decision.h"
#include "elastic/view.h"

namespace everstep::elastic {

struct AgentOptions {
  Keys keys;
  MemberRecord self;      // state kWarming; `mac` is made by `sign`
  std::string spec;       // the text of the job's spec as this worker accepted it
  LeaseId lease = 0;
  Tick lease_ttl = 0;
  Tick outage_limit = 0;  // how long training goes on while nobody can reach the store
  // Whether a member's record is authentic; without a secret always. Pure.
  std::function<bool(const MemberRecord&)> is_authentic;
  std::function<std::string(const std::string& signed_text)> sign;
};

// The part of the protocol that every worker plays, as one incarnation: registers, stands by, connects, trains, stops,
// tells what it holds, leaves. Single-threaded and pure: events in, effects out. Same events, same decisions.
//
//   registering → standing by ⇄ connecting → training → stopped ┐
//                      ↑___________________________________________|
// and from anywhere to gone (Rejoin, Exit).
//
// Rules:
//  * it obeys only a `gen` that is newer than all it obeyed before; named or not, what it did before that is over
//  * named before and not now: Rejoin as a new incarnation
//  * a proposal is connected to beside the training; nothing else follows from it
//  * whoever saw a connection close deletes members/<lost> (and `leader` if that was the leader) by a transaction that
//    compares when it was created; whoever saw silence writes suspect/
//  * after 2/3 of the TTL without a renewal: if a peer renewed meanwhile, fenced (Abort, Rejoin); if none did, training
//    goes on up to outage_limit, then stops
//  * LeaveAsked: member record to kLeaving; leaves when a generation no longer needs it (handed over, or not named),
//    with kCancelled → exit code 75; at the end of its time it leaves at once
class WorkerAgent {
 public:
  explicit WorkerAgent(AgentOptions options);

  Decision step(const AgentEvent& event, const View& view, Tick now);

  const WorkerId& id() const;
  bool is_registered() const;
  std::string state() const;  // for people: "training", "standing by"
};

}  // namespace everstep::elastic
