#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/tick.h"
#include "elastic/kv_store.h"
#include "elastic/records.h"

namespace everstep::elastic {

// What the two brains (WorkerAgent, Coordinator) want done. A shell carries effects out in their order and tells what
// came of them; it decides nothing itself.

// Send a transaction; answered by Replied, always and once, also when nobody knows what became of it. Transactions of
// one brain are sent one after the other.
struct Send {
  std::uint64_t request = 0;
  Txn txn;
};

// Connect to all others of the roster, beside whatever else is going on. Answered by Connected or ConnectFailed.
struct Connect {
  RosterRecord roster;
};

// Throw the connections of that attempt away, or what there is of them; peers must not take it for a death.
struct Disconnect {
  Attempt attempt;
};

// Take part in that generation, whose connections are up: bring the state of the origin into place (a donor: hand it
// over), then train. Answered by TrainingEnded.
struct Begin {
  GenerationRecord generation;
};

// Stop training at the next window's end; `saves`: and make a checkpoint there, since nobody goes on.
struct StopAtWindow {
  bool saves = false;
};

// Tell (Promised) which super-round was started last, and start none after the next before StopAtRound came.
struct PromiseRound {};
struct StopAtRound {
  std::int64_t round = 0;  // the last one to run
};

// Break off at once: the transport is thrown away. Answered by TrainingEnded.
struct Abort {
  std::string reason;
};

// The state of the origin may go: the new generation has made its first update.
struct ReleaseOrigin {};

// Read the whole view anew before the next step: what seems to be missing in it may have been missed.
struct LookAgain {};

// This incarnation is over. Drop everything and register as a new one after that time.
struct Rejoin {
  std::string reason;
  Tick after = 0;
};

// Leave for good: Error says how the process ends (nothing: the job is finished).
struct Exit {
  std::optional<Error> error;
};

// A line for the log, in logfmt.
struct Note {
  std::string event;
};

using Effect = std::variant<Send, Connect, Disconnect, Begin, StopAtWindow, PromiseRound, StopAtRound, Abort,
                            ReleaseOrigin, LookAgain, Rejoin, Exit, Note>;

struct Decision {
  std::vector<Effect> effects;
  std::optional<Tick> wake_at;  // tell the time then, at the latest
  std::string reason;           // why, in one line; empty if nothing was decided
};

// ---- events ----

// The view has changed, or time has passed. Both brains look at the whole view whenever they are asked.
struct Looked {};

struct Replied {
  std::uint64_t request = 0;
  Result<TxnReply> reply;
};

struct Connected {
  Attempt attempt;
};
struct ConnectFailed {
  Attempt attempt;
  std::optional<WorkerId> lost;  // who could not be reached, if one is to blame
  Error error;
  bool lost_is_dead = false;  // nobody is at its address any more
};

struct Promised {
  std::int64_t round = 0;
};

// The first update of the generation is made.
struct FirstUpdate {
  Attempt attempt;
};

// After a generation broke off because of one: another of its workers is dead, too.
struct PeerDied {
  Attempt attempt;
  WorkerId id;
};

struct TrainingEnded {
  enum class How {
    kFinished,    // all updates are made, and the last checkpoint is committed
    kStopped,     // as asked: drained
    kHandedOver,  // a donor has nothing more to give
    kBroken,      // a peer died, was silent, or the state could not be brought into place
  };

  Attempt attempt;
  How how = How::kBroken;
  HeldRecord held;
  std::optional<WorkerId> lost;  // kBroken: whose connection closed or who was silent
  bool lost_is_dead = false;     // its connection closed; else it was silent
  std::optional<Error> error;
  bool origin_is_damaged = false;  // kBroken: the checkpoint that the generation starts from cannot be read as it is
  bool is_faulty = false;          // kBroken: what this worker computes cannot be trusted
  bool is_hopeless = false;        // kBroken: the settings cannot work, here or elsewhere
};

// Somebody wants this worker to leave: a signal, a notice of the cloud, `everstep drain`.
struct LeaveAsked {
  std::string reason;
  std::int64_t within_ms = 0;  // 0: no hurry
};

struct Warmed {};  // code and data are loaded

// The lease cannot be renewed any more, or has been found gone.
struct LeaseLost {};

// What the keep-alive knows, told whenever it changes or a third of the TTL has passed.
struct RenewalNews {
  Tick last_renewed = 0;                  // this worker's
  std::optional<Tick> peer_last_renewed;  // newest word of any connected peer that it could renew
};

using AgentEvent = std::variant<Looked, Replied, Connected, ConnectFailed, Promised, FirstUpdate, TrainingEnded,
                                PeerDied, LeaveAsked, Warmed, LeaseLost, RenewalNews>;

}  // namespace everstep::elastic
