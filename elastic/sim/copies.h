#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "elastic/records.h"
#include "elastic/sim/stand_in.h"

namespace everstep::elastic::sim {

// A stage's owner state at a window's end, on its way to a guard.
struct CopyRecord {
  int stage = 0;
  TrainingState state;  // its blocks alone, no gradients
};

// What one worker keeps of owner state in one generation: as the product does, two complete versions of the stages that
// it owns and of those that it guards.
class Copies {
 public:
  // `keeps_one`: the mistake of overwriting the newest version instead of the one before it.
  Copies(const scheduler::Plan& plan, const WorkerId& self, bool keeps_one);

  // The state of this worker's blocks, at the beginning of a window.
  void keep(const TrainingState& state);
  void take(const CopyRecord& copy);

  // Whether all that this worker guards is here.
  bool is_guarding(std::int64_t version) const;

  std::vector<HeldCopy> held(Generation generation) const;

  // The blocks of all complete parts of that version; nothing: there is none.
  std::optional<TrainingState> merged(std::int64_t version) const;

 private:
  struct Version {
    std::optional<TrainingState> owned;
    std::map<int, TrainingState> guarded;  // by stage
  };
  void forget_all_but_two();

  std::set<int> guarded_;  // stages
  std::size_t kept_;       // versions
  std::map<std::int64_t, Version> versions_;
};

}  // namespace everstep::elastic::sim
