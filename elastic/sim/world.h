#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/keys.h"
#include "elastic/sim/dice.h"
#include "elastic/sim/disk.h"
#include "elastic/sim/event_queue.h"
#include "elastic/sim/fault.h"
#include "elastic/sim/mutation.h"
#include "elastic/sim/network.h"
#include "elastic/sim/oracle.h"
#include "elastic/sim/store.h"
#include "elastic/sim/traps.h"
#include "scheduler/placement.h"

namespace everstep::elastic::sim {

class Process;

// What goes wrong by chance, with which probability. All zero: the world is as it should be.
struct Noise {
  double reply_lost = 0;
  double request_late = 0;  // executed after nobody waits for it any more
  double request_refused = 0;
  double watch_wrong = 0;
  double compaction = 0;
  double stale_read = 0;
  double lease_lie = 0;  // a lease that is gone is renewed, as old servers do
  double frame_replayed = 0;
  double frame_corrupted = 0;
  int slowness = 1;  // of network and store
};

// How the job is run; the same for all workers.
struct JobSettings {
  std::string spec = "the spec";
  int min_workers = 1;
  int expected_workers = 0;
  std::int64_t steps = 0;       // 0: without end
  std::int64_t save_every = 2;  // windows
  int keep_last = 2;
  int redundancy = 1;  // guards of every stage
  Generation first_generation{1};
  Tick lease_ttl = 5 * kSecond;
  Tick round_time = 150 * kMillisecond;
  scheduler::ScheduleKind schedule = scheduler::ScheduleKind::kClockwork;
};

struct Violation {
  std::string oracle;
  std::string what;
  Tick at = 0;
};

// One simulated cluster: everything that its parts share.
class World {
 public:
  World(std::uint64_t world_seed, Mutation mistake, std::function<void(const std::string&)> trace_sink);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  Tick now() const { return queue.now(); }
  Dice& dice() { return dice_; }

  // A line of the trace, made only if somebody wants it.
  void tell(const std::string& who, const std::function<std::string()>& what);
  void violated(const std::string& oracle, const std::string& what);

  Process& add_process();  // not started yet; it would join the job as it should
  Process* process_of(const WorkerId& id);
  // Which process a worker of that id is in. Members' records say so in the product.
  void enter_address(const WorkerId& id, int process) { addresses_[id] = process; }
  std::vector<Process*> running();
  Process* leader();  // by what the store says; null: there is none that runs

  // A checkpoint could not be read, or the store is not the one it was: an operator has to look at it.
  void call_operator(const std::string& why);

  const std::uint64_t seed;
  const Mutation mutation;
  const Keys keys{"job"};
  JobSettings job;
  Noise noise;
  FaultCounts faults;
  EventQueue queue;
  Disk disk;
  Oracle oracle;
  Store store;
  Network network;
  Traps traps;
  std::vector<std::unique_ptr<Process>> processes;
  std::optional<std::string> operator_wanted;
  std::optional<Violation> violation;  // the first
  bool is_over = false;                // the job is finished, or was stopped
  bool has_spoilt = false;             // a worker has made the mistake of bad_gradient() that is made once

 private:
  Dice dice_;
  std::function<void(const std::string&)> sink_;
  std::map<WorkerId, int> addresses_;
};

}  // namespace everstep::elastic::sim
