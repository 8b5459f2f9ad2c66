#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/update/gradient_reduction.h"
#include "trainer/update/optimizer.h"
#include "trainer/update/piece_transfer.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Makes the weights that a window runs on until the update of the window before, which comes too late for it: what the
// owners' optimizers would make of the weights if that update had the gradients of the first rounds only. The way of
// one window: every worker copies the sums of its chunks as they stand after those rounds; with the last of them the
// copies set out to the owners, as a reduce does, over a channel of their own; an owner that has its sum tries the step
// and sends what comes out to its replicas. All of it runs beside forwards and backwards.
//
// A worker that waits for anything else makes no part of it. So a schedule says where it takes part at the latest, and
// proves that nobody waits there for ever (scheduler::OpKind::kTrialStep).
class ProvisionalStep {
 public:
  struct Chunk {
    int stage = 0;
    const StageLayout* layout = nullptr;
    StageOptimizer* optimizer = nullptr;  // on the owner
    Buffer weights;                       // what the step is made from
    Buffer provisional;                   // what comes out
  };

  // Chunks by ascending stage. All that is given must outlive it.
  ProvisionalStep(Transport& transport, const scheduler::Schedule& schedule, Accumulation accumulation,
                  const FrameHeader& job, DeviceMemory& memory, std::vector<Chunk> chunks);
  ~ProvisionalStep() = default;
  ProvisionalStep(const ProvisionalStep&) = delete;
  ProvisionalStep& operator=(const ProvisionalStep&) = delete;

  // At kProvisional of a chunk; never waits. `input` is how the coming update will step, as far as it is known: its
  // rate and number, and a clip_scale for a sum of some of its gradients. Nothing that the step before made may be read
  // any more, and between now and the end of this one no weights or moments may change.
  void copy(std::int64_t window, int stage, const Buffer& gradients, const StepInput& input);

  // Between two ops: takes what has arrived, and does what can be done.
  Status advance();

  // At kTrialStep: waits for the sums of the stages owned here, tries the step, and sends what comes of it. Then it
  // only waits for what others make.
  Status take_part(std::chrono::milliseconds timeout);

  // Whether take_part() would not wait, as far as advance() knows.
  bool has_taken_part() const { return phase_ == Phase::kIdle || phase_ == Phase::kSharing; }

  // Whether finish() of the stage would not wait, as far as advance() knows.
  bool is_here(int stage) const { return phase_ == Phase::kIdle || (phase_ == Phase::kSharing && !awaits(stage)); }

  // After take_part(): waits until the stage's provisional weights are here; until all of this worker's are, and
  // nothing is under way.
  Status finish(int stage, std::chrono::milliseconds timeout);
  Status finish_all(std::chrono::milliseconds timeout);

 private:
  enum class Phase : std::uint8_t {
    kIdle,     // nothing is under way
    kCopying,  // some chunks are copied
    kSumming,  // sums are on their way
    kSharing,  // this worker has done its part; weights of others are on their way
  };

  bool awaits(int stage) const { return receivers_.contains(stage); }
  FrameHeader header_of(int stage) const;
  void share();

  Transport& transport_;
  const scheduler::Schedule& schedule_;
  FrameHeader job_;
  DeviceMemory& memory_;
  std::vector<Chunk> chunks_;
  GradientReduction reduction_;
  std::map<int, Buffer> sums_;  // by stage; kept from one window to the next
  std::map<int, PieceReceiver> receivers_;
  Phase phase_ = Phase::kIdle;
  std::int64_t window_ = 0;
  std::size_t copied_ = 0;
  StepInput input_;
};

}  // namespace everstep::trainer
