#pragma once

#include <chrono>
#include <deque>
#include <vector>

#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/loop/train_loop.h"
#include "trainer/recovery/state_copies.h"
#include "trainer/update/piece_transfer.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Keeps the copies of one run up to date: on an owner, on a guard, on a worker that is both. Every version travels from
// the stage's owner in the root group (owners of all groups have the same bits) to its guards, beside the training.
// finish() must be called before joining the update exchange of the next version, keep_newest() after it.
class CopyKeeper {
 public:
  // What is wrong with `options.guards` under this schedule, if anything.
  static Status check_guards(const TrainOptions& options, const scheduler::Schedule& shape);

  // `layouts` is per stage. All that is given must outlive it.
  CopyKeeper(Transport& transport, const TrainOptions& options, const scheduler::Schedule& shape,
             const std::vector<StageLayout>& layouts, StateCopies& copies, DeviceMemory& memory);

  // A version that is new here. Never waits. Until keep_newest() the bytes of `owned` must not change.
  void add(ResumePoint resume, std::vector<StagedStage> owned);

  // Between two ops: takes note of what has arrived, since a failure may come before finish().
  Status advance();

  // Waits until the newest version's guarded stages are here.
  Status finish(std::chrono::milliseconds timeout);

  // After everybody's meeting. By then all copies of the newest version were received, so its bytes may change.
  void keep_newest() { copies_.keep_newest(); }

 private:
  int sender_of(int stage) const;

  Transport& transport_;
  const TrainOptions& options_;
  const scheduler::Schedule& shape_;
  StateCopies& copies_;
  std::deque<PieceReceiver> receivers_;
};

}  // namespace everstep::trainer
