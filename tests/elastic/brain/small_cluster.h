#pragma once

#include <map>
#include <string>
#include <vector>

#include "elastic/brain/coordinator.h"
#include "elastic/brain/worker_agent.h"
#include "elastic/high_water.h"
#include "elastic/record_seal.h"
#include "elastic/sim/kv_model.h"

namespace everstep::elastic::test {

WorkerId worker(std::uint64_t number);

// Depth 1, as wide as there are workers: the simplest plan that needs everybody.
Result<scheduler::Plan> wide_plan(const std::vector<scheduler::WorkerInfo>& workers, const scheduler::Plan* previous);

inline constexpr std::string_view kSpec = "the spec";

// Workers whose store, watches and connections are perfect and immediate; only what a test does goes wrong. Training
// does nothing by itself: `drains` says whether it stops when asked, at `position`.
class SmallCluster {
 public:
  explicit SmallCluster(int min_workers = 1);

  // One whose number is higher by a hundred is the same process, come back: it has the same address.
  void add(std::uint64_t number, bool is_warm = true, bool returns = false);
  void kill(std::uint64_t number);  // the lease goes with it
  void tell(std::uint64_t number, const AgentEvent& event);
  void end_training(std::uint64_t number, TrainingEnded::How how, HeldRecord held,
                    std::optional<WorkerId> lost = std::nullopt);
  // Lets everybody react until nothing changes, at the present time and then at so many milliseconds later.
  void run_until_quiet(Tick milliseconds = 0);

  std::optional<GenerationRecord> generation() const;
  bool has(const std::string& key) const { return view_.find(key) != nullptr; }
  const View& view() const { return view_; }
  const Keys& keys() const { return keys_; }
  void write(const Txn& txn);  // as it is: of a job with a secret only a stranger does so
  const KvModel& store() const { return store_; }

  struct Worker {
    WorkerAgent agent;
    Coordinator coordinator;
    LeaseId lease = 0;
    std::vector<Effect> effects;  // all but Send and Note, in order
    HighWater newest;
    std::optional<GenerationRecord> running;
    std::vector<Attempt> connecting;
    bool connects = true;
  };
  Worker& at(std::uint64_t number) { return workers_.at(worker(number)); }
  bool is_there(std::uint64_t number) const { return workers_.contains(worker(number)); }

  template <typename E>
  std::vector<E> effects_of(std::uint64_t number) {
    std::vector<E> found;
    for (const Effect& effect : at(number).effects) {
      if (const E* one = std::get_if<E>(&effect)) found.push_back(*one);
    }
    return found;
  }

  // Of workers that are added from now on.
  decltype(CoordinatorOptions::plan) plan = wide_plan;
  decltype(CoordinatorOptions::window_time) window_time;
  bool rebalances = false;

  std::vector<std::string> notes;           // of all workers
  bool store_is_away = false;               // nothing that workers send arrives
  RecordSeal seal;                          // of what workers write from now on
  std::vector<Error> ended_with_data_loss;  // of workers that found the store to have gone back
  bool drains = true;
  std::vector<HeldCopy> copies;  // what workers that break off have
  Position position{8};

 private:
  bool carry_out(const WorkerId& id, const Decision& decision, bool by_agent);
  bool act(const WorkerId& id, const Effect& effect);
  void refresh();

  Keys keys_{"job"};
  KvModel store_;
  View view_;
  Revision watched_ = 0;
  Tick now_ = 0;
  int min_workers_;
  std::uint32_t nonces_ = 0;
  std::map<WorkerId, Worker> workers_;
};

}  // namespace everstep::elastic::test
