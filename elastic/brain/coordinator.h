#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log_line.h"
#include "elastic/brain/anomaly_trial.h"
#include "elastic/brain/decision.h"
#include "elastic/brain/origin_choice.h"
#include "elastic/brain/situation.h"
#include "elastic/brain/speed_book.h"
#include "elastic/view.h"

namespace everstep::elastic {

struct CoordinatorOptions {
  Keys keys;
  WorkerId self;
  LeaseId lease = 0;
  Generation first_generation;  // the number of a job's first one: above all that left traces in its directory
  int min_workers = 1;
  int expected_workers = 0;  // that many are started together: the first generation need not wait longer for more
  Tick join_debounce = 0;    // joins within this time become one generation
  Tick join_interval = 0;    // at most one generation for joins in this time, unless asked for
  Tick death_debounce = 0;   // deaths, each within this time of the one before, are taken together (50 ms)
  Tick prepare_limit = 0;    // how long a proposal may take to connect before it is given up
  Tick held_limit = 0;       // how long to wait for survivors to say what they hold, besides a window
  // A host that lost so many workers within the span is shut out from joining for 1 s, then 2, 4 … 600 s; 0: never. One
  // that loses none for a span per time that it was shut out starts anew; a new leader counts that time from its own
  // beginning. A worker that nobody could connect to and that comes back at the same address is shut out likewise, for
  // 5, 10, 20 … 600 s: it stands by, and the others go on.
  int quarantine_deaths = 3;
  Tick quarantine_span = 600 * kTicksPerSecond;

  // The best plan for these workers (none of them may be left out but as a spare): pure, the same on every worker.
  std::function<Result<scheduler::Plan>(const std::vector<scheduler::WorkerInfo>& workers,
                                        const scheduler::Plan* previous)>
      plan;
  bool rebalances = false;  // plans by how fast workers are, and anew when that has changed and pays
  // How long a window of the plan takes with workers that are so slow. Only asked when rebalancing.
  std::function<Tick(const scheduler::Plan& plan, const std::vector<scheduler::WorkerInfo>& workers)> window_time{};
  // Numbers attempts: random in the product, seeded in the simulator.
  std::function<std::uint32_t()> nonce;
};

// The part that the leader plays. Any registered worker runs one; it acts only while the `leader` key is its own, and
// tries to become leader when there is none. Safety never rests on being alone: every change of `gen` and HEAD compares
// their revisions.
//
// Reconciles: what the view shows against what should be.
//  * nobody trains yet: opens a generation as soon as enough members are ready (after the debounce)
//  * joins and announced leaves only: proposal → all connected → drain → all held → open with origin kMemory
//  * a member of the generation is gone: evict suspects, wait for what survivors hold (up to held_limit), open.
//    The origin is the newest of what survivors have in memory (an orderly stop, sums of a group, copies) and HEAD, by
//    the rules of choose_origin(); without any of these it is the beginning
//    A connection that broke without a death counts as one: held/ records without a drain say so
//    So does a donor that left before it had handed its state over
//  * a leave that leaves nobody: drain that ends the job. Too few: drain that saves, then waits
//  * a leave whose time is shorter than a window: drain inside the window, at the round after the highest promised
//  * newcomers that would only be spares change nothing
//  * a worker that is clearly slower than it was taken for, or not any more: a change like that for a join, if the plan
//    for such workers is faster by 10 % at least and saves, over the updates that are left (ten minutes at most), twice
//    what a switch costs. At most one in join_interval. Nobody is evicted for being slow
//  * fewer than min_workers: waits, and says so once
//  * workers stopped because of a gradient that must not be applied: the window is run again, by the rules of
//    anomaly_trial.h; whoever is found to compute wrongly is evicted, and its host shut out
//  * somebody holds `finished`: writes `finished`
// An unknown outcome of its transactions is resolved by sending the same again; refused: look again, at the next event
// and once the view shows at least what refused it. A leader that follows another goes on from what the keys say: a
// proposal and a drain mean the same whoever wrote them, and only `open` changes who trains.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  // Events: Looked and Replied. `window_time`: how long a window takes now, for deadlines (0: not known).
  Decision step(const std::variant<Looked, Replied>& event, const View& view, Tick now, Tick window_time);

  bool leads(const View& view) const;
  const std::string& state() const {
    return state_;
  }  // "training", "preparing", "draining", "recovering",
     // "waiting for 2 more workers"

 private:
  struct Pending {
    std::uint64_t request = 0;
    Txn txn;
    std::string what;  // for people
    std::optional<Tick> retry_at{};
    bool went_unanswered = false;
    std::vector<std::string> events{};  // to be told once it has happened
  };
  struct Broken {
    Tick since = 0;        // and since the store answers again: whoever cannot write cannot say what it holds
    Tick last_loss = 0;    // since then nobody else was lost
    std::size_t left = 0;  // workers
    Revision newest_member = 0;
    bool has_asked = false;  // whether the store answers at all
    bool has_looked = false;
  };
  struct ShutOut {
    Revision revision = 0;
    Tick until = 0;
    Tick calm_since = 0;  // no shorter ago than the end of the last time, or the last loss
  };
  struct SetBack {
    Tick until = 0;
    int times = 0;
  };
  struct Change {
    scheduler::Plan plan;
    std::string reason;
  };

  void on_reply(const Replied& event, Tick now);
  void try_to_lead(const View& view, Tick now);
  void depose_orphan(const View& view, Tick now);
  bool may_decide(const Situation& seen);
  void forget();
  bool is_caught_up(const View& view, Tick now);

  void track(const Situation& seen, Tick now);
  void reconcile(const Situation& seen, Tick now, Tick window_time);
  void track_losses(const Situation& seen, Tick now);
  void track_quarantines(const Situation& seen, Tick now);
  bool loses_too_many(const std::string& host) const;
  bool write_quarantine(const Situation& seen, Tick now);
  bool end_quarantine(const Situation& seen, Tick now);
  void wake_for_quarantines(Tick now);
  KvOp quarantine(const Situation& seen, const std::string& whom, std::int64_t first_seconds) const;
  void tell_of_quarantine(const std::string& whom, const QuarantineRecord& record);
  bool is_back_unreached(const Situation& seen, const std::string& address) const;
  bool has_newcomers(const Situation& seen) const;
  void stop_if_asked(const Situation& seen);
  void start(const Situation& seen, Tick now);
  bool pauses_after_failures(Tick now);
  bool is_broken(const Situation& seen) const;
  void recover(const Situation& seen, Tick now, Tick window_time);
  void let_leavers_go(const Situation& seen);
  bool evict_outcasts(const Situation& seen);
  std::string eviction_event(const Situation& seen, const MemberRecord& member) const;
  std::vector<WorkerId> silent_survivors(const Situation& seen) const;

  // coordinator_anomaly.cpp
  std::optional<TrialStep> step_after_anomaly(const Situation& seen) const;
  std::optional<WorkerId> guilty_worker(const Situation& seen) const;
  bool evict_guilty(const Situation& seen, Tick now);
  std::optional<Change> unchanged_plan(const Situation& seen, Tick now) const;
  void hand_on_anomalies(const Situation& seen, GenerationRecord& next) const;

  void await_drain(const Situation& seen, Tick now);
  void await_prepared(const Situation& seen, Tick now, Tick window_time);
  void consider_change(const Situation& seen, Tick now, Tick window_time);
  void consider_rebalance(const Situation& seen, Tick now);
  std::string rebalance_text(const std::map<WorkerId, double>& before, const scheduler::Plan& next) const;
  bool joins_are_due(const Situation& seen, const std::vector<WorkerId>& joined, Tick now);

  std::vector<WorkerId> eligible(const Situation& seen, Tick now) const;
  bool is_shut_out(const Situation& seen, const Situation::Member& member, Tick now) const;
  bool waits_for_more(std::size_t workers);
  std::vector<WorkerId> those_to_go_on(const Situation& seen, Tick now) const;
  Tick trust_in_speeds() const;
  std::vector<scheduler::WorkerInfo> infos_of(const Situation& seen, const std::vector<WorkerId>& workers) const;
  std::optional<Change> planned(const Situation& seen, const std::vector<WorkerId>& workers);
  std::optional<Tick> leave_deadline(const Situation& seen) const;
  std::optional<Tick> must_drain_at(const Situation& seen, Tick window_time) const;
  bool is_usable(const Situation& seen, const RosterRecord& proposal) const;

  void propose(const Situation& seen, const Change& change);
  void withdraw(const Situation& seen, Tick now, const std::string& reason);
  void drain(const Situation& seen, DrainRecord record);
  void drain_for_leavers(const Situation& seen, Tick now, Tick window_time, const std::string& reason);
  void open(const Situation& seen, RosterRecord roster, const OriginChoice& choice, const std::string& reason);
  void open_anew(const Situation& seen, Tick now, const std::string& reason);
  std::set<WorkerId> living(const Situation& seen) const;
  std::map<WorkerId, HeldRecord> held_by_the_living(const Situation& seen) const;

  void note(const LogLine& event) { decision_.effects.emplace_back(Note{event.text()}); }
  Txn as_leader(const Situation& seen) const;  // compares leader and gen
  void send(Txn txn, const std::string& what);
  void wake(Tick at);
  std::string change_text(const Situation& seen, const std::vector<WorkerId>& next) const;
  void learn_names(const View& view);
  std::string name_of(const WorkerId& id) const;

  CoordinatorOptions options_;
  Decision decision_;
  std::string state_ = "waiting for a leader";
  std::uint64_t requests_ = 0;
  std::optional<Pending> pending_;
  bool was_refused_ = false;
  Revision known_ = 0;  // the store was at least there: wait until the view is, too
  Tick known_since_ = 0;
  std::optional<Tick> vacant_since_;
  std::optional<Tick> orphaned_since_;  // since when the leader that the view shows is no member
  bool said_damaged_ = false;
  std::map<std::string, std::string> names_;  // of members, by key: the lost are told by name, too

  // What only the leader remembers; a new leader starts afresh.
  std::map<WorkerId, Tick> joined_at_;
  std::map<WorkerId, Tick> leaving_since_;
  std::map<WorkerId, SetBack> set_back_;  // could not be connected to: not before then
  std::map<WorkerId, MemberRecord> last_members_;
  std::map<std::string, std::vector<Tick>> deaths_;  // by host
  std::map<std::string, ShutOut> shut_out_;          // by host or address
  std::set<std::string> unreached_;                  // addresses of those who were lost before an update was made
  std::set<WorkerId> judged_;                        // outcasts of the present generation
  std::optional<Attempt> watched_;                   // the generation that the following are about
  std::optional<Broken> broken_;                     // if it is
  std::optional<Attempt> keeps_guilty_in_;           // a generation that cannot do without a worker that is at fault
  Tick watched_since_ = 0;
  std::optional<Attempt> proposed_;
  Tick proposed_since_ = 0;
  SpeedBook speeds_;
  // Those that were slow when a plan was last made to be followed, or found not to pay.
  std::map<WorkerId, double> planned_for_;
  std::pair<Attempt, std::string> why_{};  // the last proposal, and the reason for it
  int fruitless_ = 0;                      // generations in a row that never came to an update
  bool said_waiting_ = false;
  std::string no_plan_;  // why, as it was said last
};

}  // namespace everstep::elastic
