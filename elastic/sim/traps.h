#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace everstep::elastic::sim {

class Process;

// Where a worker can be hit.
enum class Point : std::uint8_t {
  kRound,     // begins to compute a round
  kExchange,  // in the update exchange
  kConnecting,
  kRestoring,
  kWritingShard,  // before each step of it
  kAcknowledged,
  kBeforeManifest,  // the committer has all acknowledgements
  kBeforeCommit,    // the manifest is durable, HEAD's transaction not yet sent
  kCleaningUp,      // before each file that goes
  kLeading,         // the coordinator has just sent something
};

// Faults that wait for a worker to come to some point. Each goes off once.
class Traps {
 public:
  using Action = std::function<void(Process&)>;

  // At the n-th time (from 1) that any process comes there.
  void set(Point point, int countdown, Action action) { traps_.push_back({point, countdown, std::move(action)}); }
  void clear() { traps_.clear(); }

  // Called by the workers.
  void reached(Point point, Process& process);

 private:
  struct Trap {
    Point point;
    int countdown = 1;
    Action action;
  };

  std::vector<Trap> traps_;
};

}  // namespace everstep::elastic::sim
