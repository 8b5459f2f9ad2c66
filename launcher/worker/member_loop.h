#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "elastic/brain/coordinator.h"
#include "elastic/brain/worker_agent.h"
#include "elastic/high_water.h"
#include "launcher/worker/background_threads.h"
#include "launcher/worker/change_clock.h"
#include "launcher/worker/commit_role.h"
#include "launcher/worker/forgery_log.h"
#include "launcher/worker/generation_run.h"
#include "launcher/worker/lease_keeper.h"
#include "launcher/worker/leave_notice.h"
#include "launcher/worker/mailbox.h"
#include "launcher/worker/metrics.h"
#include "launcher/worker/outage_clock.h"
#include "launcher/worker/roster_connector.h"
#include "launcher/worker/run_progress.h"
#include "launcher/worker/view_keeper.h"
#include "launcher/worker/worker_order.h"

namespace everstep::launcher {

// What a worker process has, whichever incarnation it is in.
struct WorkerParts {
  elastic::KvStore& kv;
  const JoinedJob& job;
  const elastic::Keys& keys;
  elastic::HighWater& high_water;
  trainer::PeerConnector& connector;
  const trainer::DataSource& data;
  CheckpointStore& checkpoints;
  ComputeWatch& watch;
  trainer::FlightRecorder& recorder;
  MetricsBoard& metrics;
  RunProgress& progress;
  Curve& curve;
  OutageClock& outage;
  std::string name;
  std::string host;
  std::function<void(const FromWorker&)> tell;  // the supervisor, if there is one
  std::function<void(const std::string& event)> log;
  const WorkerDevice& device;
  double slowdown = 1;
  bool returns = false;  // there was an incarnation before
};

// One life of a worker as a member of the job: the loop that has its state. It drives the two brains and carries out
// what they want; threads around it connect, train, renew the lease, watch etcd, and reach it through its mailbox.
class MemberLoop {
 public:
  struct End {
    std::optional<Tick> rejoin_after;  // another incarnation is to follow
    std::optional<Error> error;        // else: why the process leaves; nothing: the job is finished
  };

  // kUnavailable: etcd grants no lease.
  static Result<std::unique_ptr<MemberLoop>> begin(WorkerParts& parts);
  ~MemberLoop();
  MemberLoop(const MemberLoop&) = delete;
  MemberLoop& operator=(const MemberLoop&) = delete;

  End run();

  // From any thread: somebody wants this worker to leave.
  void ask_to_leave(const LeaveNotice& notice);

 private:
  struct Poke {};  // something else than an event: look
  struct StoreTried {
    bool has_answered = false;
  };
  using Message = std::variant<Poke, StoreTried, elastic::AgentEvent>;

  MemberLoop(WorkerParts& parts, WorkerId self, elastic::LeaseId lease, Tick granted);
  elastic::AgentOptions agent_options(elastic::LeaseId lease) const;
  elastic::CoordinatorOptions coordinator_options(elastic::LeaseId lease) const;
  CommitFacts commit_facts() const;
  std::chrono::nanoseconds patience() const;

  void handle_all(std::vector<Message>& messages);
  void handle(elastic::AgentEvent event);
  void step_agent(const elastic::AgentEvent& event);
  void step_coordinator(const std::variant<elastic::Looked, elastic::Replied>& event);
  void take_wake(std::optional<Tick> wake);
  Tick group_limit() const;
  void tell_of_dead(PeerLines& lines);
  void watch_old_lines(Tick now);
  void time_generation(Tick now);
  void look_for_tampering(Tick now);
  Result<elastic::TxnReply> transact(const elastic::Txn& txn);
  void look_after_checkpoints();
  void look_at_outage();
  void show_progress();
  void add_speeds(elastic::ProgressRecord& record) const;

  void carry_out(const elastic::Connect& connect);
  void carry_out(const elastic::Disconnect& disconnect) { connector_.drop(disconnect.attempt); }
  void carry_out(const elastic::Begin& begin);
  void carry_out(const elastic::StopAtWindow& stop);
  void carry_out(const elastic::PromiseRound&);
  void carry_out(const elastic::StopAtRound& stop);
  void carry_out(const elastic::Abort& abort);
  void carry_out(const elastic::ReleaseOrigin&);
  void carry_out(const elastic::LookAgain&) { view_.distrust(); }
  void carry_out(const elastic::Rejoin& rejoin);
  void carry_out(const elastic::Exit& exit);
  void carry_out(const elastic::Note& note) { parts_.log(note.event); }

  void on_lease_news(const LeaseNews& news);
  void on_training_ended(const elastic::TrainingEnded& ended);
  void on_first_update();
  bool is_witness(const elastic::GenerationRecord& generation) const;
  std::string name_of(const WorkerId& id) const;
  RunCallbacks run_callbacks(const elastic::GenerationRecord& generation);
  std::optional<elastic::AnomalyTrial> tried_here(const elastic::GenerationRecord& generation) const;
  std::optional<storage::Head> head() const;

  WorkerParts& parts_;
  const WorkerId self_;
  const elastic::LeaseId lease_;
  Mailbox<Message> mailbox_;
  ViewKeeper view_;
  elastic::WorkerAgent agent_;
  elastic::Coordinator coordinator_;
  CommitRole commits_;
  const TrainingGround ground_;
  RosterConnector connector_;
  ChangeClock clock_;
  std::unique_ptr<GenerationRun> run_;
  std::unique_ptr<PeerLines> old_lines_;  // of a generation that broke off
  std::shared_ptr<const trainer::EndState> end_state_;
  std::map<Generation, GenerationCopies> copies_;  // by generation
  GroupSums sums_;                                 // the last one
  std::map<WorkerId, std::string> names_;          // of those it connected to, who may be gone by now
  Status saved_;                                   // the last checkpoint of a finished run
  std::optional<End> end_;
  std::optional<Tick> wake_;
  ForgeryLog forgeries_;
  std::atomic<Tick> renewed_at_{0};  // by the keeper's thread
  Tick known_renewal_ = 0;           // to the agent
  Tick told_renewed_ = 0;            // to peers: the renewal it was about
  Tick progress_shown_ = 0;
  std::int64_t redone_ = 0;  // minibatches of the generation before that this one runs again
  elastic::Revision generation_seen_ = 0;
  bool stands_by_ = true;  // in the generation that was seen last
  bool is_asked_to_leave_ = false;
  elastic::Revision head_seen_ = 0;
  elastic::Revision abandoned_seen_ = 0;
  BackgroundThreads retired_;  // generations that have ended, and may still wait for the disk
  LeaseKeeper keeper_;         // last: its thread uses the mailbox
};

}  // namespace everstep::launcher
