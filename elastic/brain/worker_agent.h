#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/brain/decision.h"
#include "elastic/view.h"

namespace everstep::elastic {

struct AgentOptions {
  Keys keys;
  MemberRecord self;  // state kWarming
  std::string spec;   // the text of the job's spec as this worker accepted it
  LeaseId lease = 0;
  Tick lease_ttl = 0;
  Tick outage_limit = 0;  // how long training goes on while nobody can reach the store
  // How long this worker's group may take to stop by itself after a loss in another one, as it is now.
  std::function<Tick()> group_limit = [] { return Tick{0}; };
  bool returns = false;  // this process was a member before, under another id
};

// How long to wait before a transaction with an unknown outcome is sent again.
inline constexpr Tick kRetryAfter = kTicksPerSecond / 5;

// The part of the protocol that every worker plays, as one incarnation: registers, stands by, connects, trains, stops,
// tells what it holds, leaves. Single-threaded and pure: events in, effects out. Same events, same decisions.
//
//   registering → standing by ⇄ connecting → training → stopped ┐
//                      ↑___________________________________________|
// and from anywhere to gone (Rejoin, Exit).
//
// Rules:
//  * it obeys only a `gen` that is newer than all it obeyed before; named or not, what it did before that is over
//  * named before and not now: Rejoin as a new incarnation. So does whoever finds its own member key gone
//  * a proposal is connected to beside the training; nothing else follows from it. What was given up once is not tried
//    again: a generation that is opened on it all the same has failed
//  * whoever saw a connection close deletes members/<lost> (and `leader` if that was the leader) by a transaction that
//    compares when it was created, and the generation; whoever saw silence writes suspect/
//  * a worker of its generation that was there and is gone from the view: Abort, since nothing more can come of it; but
//    if that was in another group, only after group_limit: its own may be about to keep its sums
//  * after 2/3 of the TTL without a renewal: if it has known for 1/6 of it, and for a second at least, that a peer
//    renewed more than half a TTL later than itself, fenced (Abort, Rejoin); if none did, the store is away for all,
//    and training goes on up to outage_limit, then Rejoin
//  * all it writes about a generation compares that `gen` is still the one it obeys; refused means that it is not
//  * a donor says when it has handed its state over. It keeps it, and stays, until somebody has made the first update
//    with it: should the generation break before, the donor tells what it holds like everybody else
//  * LeaveAsked: member record to kLeaving; leaves when a generation no longer needs it (handed over, or not named),
//    with kCancelled → exit code 75; at the end of its time it leaves at once. ask/drain/<self> is the same
//  * whoever cannot read the checkpoint to start from leaves and says so: others may have better luck, and if nobody
//  has,
//    a job that ends is better than one that tries for ever
//  * so does whoever is found to be faulty
//  * a drain that saves lets the leaving go once they stopped; one that ends the job, everybody who was there by then,
//    and if people asked for it, whoever returns
class WorkerAgent {
 public:
  explicit WorkerAgent(AgentOptions options);

  Decision step(const AgentEvent& event, const View& view, Tick now);

  const WorkerId& id() const { return options_.self.id; }
  bool is_registered() const { return registered_; }
  std::string state() const;  // for people: "training", "standing by"

 private:
  enum class Role { kNone, kSpare, kDonor, kWorker };
  static std::string_view role_text(Role role);
  enum class Link { kConnecting, kUp, kFailed };
  enum class Write { kRegister, kMember, kEvict, kSuspect, kHeld, kPrepared, kPromise, kReady };

  struct Leaving {
    std::string reason;
    std::int64_t within_ms = 0;
    std::optional<Tick> deadline;
  };
  struct Lost {
    WorkerId id;
    bool dead = false;
    std::string reason;
    Revision tried_at = -1;  // of the view when it was tried last
  };
  // What it does in the generation that it obeys.
  struct Part {
    GenerationRecord record;
    Revision modified = 0;
    Role role = Role::kNone;
    bool begun = false;
    bool ended = false;
    bool aborted = false;
    bool handed_over = false;
    bool origin_is_kept = false;  // handed_over: nobody is known to have made the first update
    bool first_update = false;
    Revision drain_obeyed = 0;
    bool asked_promise = false;
    std::optional<std::int64_t> promise;
    std::optional<HeldRecord> held;
    std::vector<Lost> lost;
    std::optional<Tick> bereft;  // since when the view shows a loss in another group
    std::vector<WorkerId> seen;  // workers that were in the view since the generation was obeyed
    std::vector<Write> written;  // kHeld, kPromise, kReady: done, or refused for good
    bool is_running() const { return begun && !ended; }
    bool has_written(Write kind) const;
  };
  struct Pending {
    std::uint64_t request = 0;
    Write kind = Write::kRegister;
    Txn txn;
    std::string subject;  // the text written, or the attempt; kEvict: what to say of it
    std::optional<Tick> retry_at;
  };

  void take(const Looked& event, Tick now);
  void take(const Replied& event, Tick now);
  void take(const Connected& event, Tick now);
  void take(const ConnectFailed& event, Tick now);
  void take(const Promised& event, Tick now);
  void take(const FirstUpdate& event, Tick now);
  void take(const TrainingEnded& event, Tick now);
  void take(const PeerDied& event, Tick now);
  void take(const LeaveAsked& event, Tick now);
  void take(const Warmed& event, Tick now);
  void take(const LeaseLost& event, Tick now);
  void take(const RenewalNews& event, Tick now);
  void note_loss(Lost lost);
  void remember(HeldRecord held);

  void look(const View& view, Tick now);
  void look_at_self(const View& view, Tick now);
  void look_at_renewals(Tick now);
  void look_at_generation(const View& view);
  void obey(GenerationRecord record, Revision modified);
  void look_at_peers(const View& view, Tick now);
  bool may_go_on_without(const WorkerId& peer, Tick now);
  std::vector<WorkerId> vanished_workers(const View& view);
  void look_after_donation(const View& view, bool lost_a_worker);
  void look_at_proposal(const View& view);
  void look_at_drain(const View& view);
  void look_at_leaving(const View& view, Tick now);
  void begin_if_connected();
  bool is_stopped_for_spectators(const View& view, const DrainRecord& drain) const;
  bool is_needed() const;
  std::optional<DrainRecord> drain_of_part(const View& view) const;

  void write_next(const View& view, Tick now);
  std::optional<Pending> next_write(const View& view);
  std::optional<Pending> eviction(const View& view);
  std::string loss_text(const std::string& event, const Lost& lost, const MemberRecord& member) const;
  std::optional<Pending> generation_write(Write kind, std::string key, std::string value) const;
  Pending registration() const;
  Pending member_update(const View& view) const;
  MemberRecord wanted_record() const;
  void on_written(const Pending& write, const TxnReply& reply);
  void on_refused(const Pending& write, const TxnReply& reply);
  void on_registration_refused(const Pending& write, const TxnReply& reply);

  void connect(const RosterRecord& roster);
  void disconnect_all_but(const std::vector<Attempt>& kept);
  void give_up(const Attempt& attempt);
  void break_off(const std::string& reason);
  void rejoin(const std::string& reason);
  void leave(std::optional<Error> error);
  void decide(Effect effect, const std::string& reason);
  void wake(Tick at);

  AgentOptions options_;
  Decision decision_;
  bool gone_ = false;
  bool warmed_ = false;
  bool registered_ = false;
  bool seen_self_ = false;
  Revision member_created_ = 0;
  std::string member_text_;  // as it was written last
  std::optional<Leaving> leaving_;
  std::optional<RenewalNews> renewal_;
  std::optional<Tick> outpaced_since_;  // when it was first heard that peers renew while this worker cannot
  std::optional<Part> part_;
  std::optional<HeldRecord> in_memory_;  // what was held before the present generation began to change it
  std::map<Attempt, Link> links_;
  std::map<Attempt, std::string> link_errors_;
  std::optional<RosterRecord> proposal_;
  Revision proposal_modified_ = 0;
  std::optional<Attempt> prepared_;  // told of, or refused
  std::optional<Pending> pending_;
  std::uint64_t requests_ = 0;
};

}  // namespace everstep::elastic
