#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/brain/coordinator.h"
#include "elastic/brain/worker_agent.h"
#include "elastic/sim/committer.h"
#include "elastic/sim/connector.h"
#include "elastic/sim/run.h"
#include "elastic/sim/store.h"

namespace everstep::elastic::sim {

class Process;

// One life of a worker as a member of the job: the loop around the two brains, as the product has it. Calls of the
// store block the loop; connecting, training, saving, committing and renewing go on beside it.
class MemberLoop final : public WatchListener, public std::enable_shared_from_this<MemberLoop> {
 public:
  MemberLoop(Process& process, WorkerId id);
  MemberLoop(const MemberLoop&) = delete;
  MemberLoop& operator=(const MemberLoop&) = delete;
  ~MemberLoop() override;

  void begin();

  const WorkerId& id() const { return id_; }
  std::string state() const;  // for people
  Process& process() { return process_; }
  const View& view() const { return view_; }

  void tell(AgentEvent event);  // from beside the loop
  void take(const Hello& hello);
  void take(const Frame& frame);
  void peer_lost(const WorkerId& id, bool is_dead);
  void on_events(const std::vector<WatchEvent>& events) override;
  void on_gap() override;

  // Lets something happen as long as this loop lives.
  void later(Tick delay, std::function<void()> action);

  // Blocks the loop until the store has answered.
  void transact(const Txn& txn, std::function<void(const Result<TxnReply>&)> then);

 private:
  void join(LeaseId lease, Tick granted);
  AgentOptions agent_options() const;
  CoordinatorOptions coordinator_options() const;

  // The loop.
  void poke();
  void iterate();
  void run_tasks();
  void do_next(std::vector<std::function<void()>> tasks);
  void refresh();
  void handle(AgentEvent event);
  void step_agent(const AgentEvent& event);
  void step_coordinator(const std::variant<Looked, Replied>& event);
  void do_effects(const Decision& decision, bool by_agent);
  void take_wake(std::optional<Tick> wake);
  void look_after_checkpoints();

  void carry_out(const Send& send);  // by the agent
  void carry_out(const Connect& connect);
  void carry_out(const Disconnect& disconnect) { connector_.drop(disconnect.attempt); }
  void carry_out(const Begin& begin);
  void carry_out(const StopAtWindow& stop);
  void carry_out(const PromiseRound&);
  void carry_out(const StopAtRound& stop);
  void carry_out(const Abort&);
  void carry_out(const ReleaseOrigin&);
  void carry_out(const LookAgain&) { has_gap_ = true; }
  void carry_out(const Rejoin& rejoin);
  void carry_out(const Exit& exit);
  void carry_out(const Note&) {}
  bool end();

  // The thread that renews the lease.
  void renew_in(Tick delay);
  void renew();
  void on_training_ended(const TrainingEnded& ended);
  std::optional<HeadDocument> head() const;

  Process& process_;
  const WorkerId id_;
  LeaseId lease_ = 0;
  Tick last_renewed_ = 0;
  std::optional<Tick> peer_renewed_;
  std::optional<WorkerAgent> agent_;
  std::optional<Coordinator> coordinator_;
  View view_;
  std::vector<WatchEvent> events_;
  bool has_gap_ = true;
  Tick listed_ = 0;
  bool has_listed_ = false;

  std::deque<AgentEvent> mailbox_;
  std::deque<std::function<void()>> tasks_;
  bool is_busy_ = false;     // an iteration of the loop is under way
  bool is_waiting_ = false;  // for the store
  bool has_changed_ = false;
  bool is_over_ = false;
  std::optional<Tick> wake_;
  std::uint64_t timers_ = 0;  // the newest one counts

  Connector connector_;
  Committer committer_;
  std::shared_ptr<Run> run_;
  std::optional<RosterRecord> broken_;  // whose lifelines are watched
  Tick watched_until_ = 0;
  std::shared_ptr<const TrainingState> end_state_;
  std::shared_ptr<const TrainingState> sums_;                   // by its group, after a loss in another one
  std::map<Generation, std::shared_ptr<const Copies>> copies_;  // by the generation that they were made in
  Revision head_seen_ = 0;
  Revision abandoned_seen_ = 0;
};

}  // namespace everstep::elastic::sim
