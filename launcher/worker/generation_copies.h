#pragma once

#include <memory>
#include <vector>

#include "elastic/records.h"
#include "trainer/recovery/end_state.h"
#include "trainer/recovery/state_copies.h"

namespace everstep::launcher {

// What is left of the copies that a worker had in a generation, once its part there has ended.
struct GenerationCopies {
  std::shared_ptr<const trainer::StateCopies> states;  // nothing: there are none
  std::vector<trainer::WindowHistory> uncommitted;     // what was handed to checkpoints that were not committed
  int window = 1;

  // As other workers are told.
  std::vector<elastic::HeldCopy> held(Generation generation) const;

  // What is here of the origin, with all of the past that no checkpoint up to `committed` tells; nothing: no part of
  // it.
  std::shared_ptr<const trainer::CopiedState> at(Position origin, Position committed) const;
};

// What a worker's group has in its sums after a generation that lost a worker of another group.
struct GroupSums {
  std::shared_ptr<const trainer::EndState> state;  // nothing: there are none
  elastic::HeldSums what;                          // as other workers are told
  std::vector<trainer::WindowHistory> uncommitted;
  int window = 1;

  // Likewise, if that is the origin.
  std::shared_ptr<const trainer::EndState> at(const elastic::GenerationRecord& next, Position committed) const;
};

}  // namespace everstep::launcher
