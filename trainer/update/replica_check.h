#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/update/update_record.h"

namespace everstep::trainer {

// Replicas of a stage have the same bits after every update. A bit that flipped in one of them changes the gradients of
// the window, and the next update covers the trace: so the hashes of all replicas meet in the update exchange, before
// the window's gradients are applied.
struct WrongReplica {
  int worker = 0;
  int stage = 0;

  bool operator==(const WrongReplica&) const = default;
};

// The first replica whose hash is not what most replicas of its stage have; among as many of each, not what the owner
// in the first group has. A flip in the owner's own state cannot be told from one in a replica where there are but two.
std::optional<WrongReplica> find_wrong_replica(const scheduler::Schedule& schedule,
                                               const std::vector<UpdateRecord>& records);

Error error_of(const WrongReplica& wrong);

}  // namespace everstep::trainer
