#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "elastic/decision.h"
#include "elastic/view.h"

namespace everstep::elastic {

struct CoordinatorOptions {
  Keys keys;
  WorkerId self;
  LeaseId lease = 0;
  int min_workers = 1;
  Tick join_debounce = 0;      // joins within this time become one generation
  Tick join_interval = 0;      // at most one generation for joins in this time, unless asked for
  Tick death_debounce = 0;     // deaths within this time are taken together (50 ms)
  Tick prepare_limit = 0;      // how long a proposal may take to connect before it is given up
  Tick held_limit = 0;         // how long to wait for survivors to say what they hold
  std::function<bool(const MemberRecord&)> is_authentic;

  // The best plan for these workers (none of them may be left out but as a spare): pure, the same on every worker.
  std::function<Result<scheduler::Plan>(const std::vector<scheduler::WorkerInfo>& workers,
                                        const scheduler::Plan* previous)>
      plan;
  // Numbers attempts: random in the product, seeded in the simulator.
  std::function<std::uint32_t()> nonce;
};

// The part that the leader plays. Any registered worker runs one; it acts only while the `leader` key is its own, and
// tries to become leader when there is none. Safety never rests on being alone: every change of `gen` and HEAD compares
// their revisions.
//
// Reconciles: what the view shows against what should be.
//  * nobody trains yet: opens a generation as soon as enough members are ready (after the debounce)
//  * joins and announced leaves only: proposal → all connected → drain → all held → open with base kMemory
//  * a member of the generation is gone: evict suspects, wait for what survivors hold (at most held_limit), open.
//    The base is memory if all blocks are held at one position that is not behind HEAD, else HEAD, else the beginning
//  * fewer than min_workers: waits, and says so once
//  * all hold `finished`: writes `finished`
// An unknown outcome of its transactions is resolved by sending the same again; refused: look again.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  // Events: Looked and Replied. `window_time`: how long a window takes now, for deadlines (0: not known).
  Decision step(const std::variant<Looked, Replied>& event, const View& view, Tick now, Tick window_time);

  bool leads(const View& view) const;
  std::string state() const;  // "training", "preparing", "draining", "recovering", "waiting for 2 more workers"
};

}  // namespace everstep::elastic
