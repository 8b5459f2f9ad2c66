#pragma once

#include <memory>
#include <vector>

#include "elastic/records.h"
#include "trainer/recovery/held_state.h"
#include "trainer/recovery/state_copies.h"

namespace everstep::launcher {

// What is left of the copies that a worker kept in a generation, once its part there has ended.
struct KeptCopies {
  std::shared_ptr<const trainer::StateCopies> states;  // nothing: none were kept
  std::vector<trainer::WindowHistory> uncommitted;     // what was handed to checkpoints that were not committed
  int window = 1;

  // As other workers are told.
  std::vector<elastic::HeldCopy> held(Generation generation) const;

  // What is here of the base, with all of the past that no checkpoint up to `committed` tells; nothing: no part of it.
  std::shared_ptr<const trainer::CopiedState> at(Position base, Position committed) const;
};

// What a worker's group kept in a generation that lost a worker of another group.
struct KeptGroup {
  std::shared_ptr<const trainer::HeldState> state;  // nothing: nothing was kept
  elastic::KeptSums what;                           // as other workers are told
  std::vector<trainer::WindowHistory> uncommitted;
  int window = 1;

  // Likewise, if that is the base.
  std::shared_ptr<const trainer::HeldState> at(const elastic::GenerationRecord& next, Position committed) const;
};

}  // namespace everstep::launcher
