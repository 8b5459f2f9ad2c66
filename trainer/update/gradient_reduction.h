#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <vector>

#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/model/model_config.h"
#include "trainer/update/piece_transfer.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Sums a window's gradients at the owners of their stages, beside the forwards and backwards. The way of one stage:
// replicas send to the owner in their group; owners of the other groups send to the owner in the root group; in the
// root group the first stage's owner adds the last stage's gradient of the tied parameter to its own and returns that
// sum; at last the root sends the total to the other groups' owners. Each step adds whole buffers in an order that the
// plan alone decides, so every owner of a stage, and both owners of the tied parameter, end with the same bits.
//
// The sums within and over the groups run whenever frames have arrived; tied sums and totals wait for finish(), when
// all replica and group sums have been handed over: on a link between two owners those come first.
//
// A capture takes the first half of that way: a copy of the gradients as they stand after a round is summed at the root
// group's owner, and stays there.
//
// In a mirror group of P devices with P stages this moves what a reduce-scatter would.
class GradientReduction {
 public:
  // `schedule` and `memory`, where the sums are, must outlive it. Of two on one transport each has a channel.
  GradientReduction(Transport& transport, const scheduler::Schedule& schedule, Accumulation accumulation,
                    const FrameHeader& job, DeviceMemory& memory = host_memory(),
                    Channel channel = Channel::kCollectives);

  // Before the first start(): makes room for the parts of sums of up to that many bytes. What is not told is allocated
  // when it comes, when a GPU may be busy with transfers that an allocation would wait for.
  void expect_sums(std::size_t largest) { fit_staging(staging_, memory_, largest); }

  // At StartReduce, never waits. From now until finish() and everybody's meeting at the update, `sums` must not be
  // touched. `layout` is the stage's.
  void start(std::int64_t window, int stage, const StageLayout& layout, const Buffer& sums);

  // At Capture, never waits. `sums` is a copy that nobody else touches; at the root group's owner it becomes the sum.
  void capture(std::int64_t window, int round, int stage, const Buffer& sums);

  // Whether sums of a capture are still on their way here.
  bool is_capturing() const;

  // Whether finish() has to wait for no replica or group, as far as advance() knows; totals may still be missing.
  bool has_all_sums() const;

  // Between two ops: takes what has arrived.
  Status advance();

  // The same, and goes on to the end when all sums within and over the groups are there: for whoever has started all
  // stages of this worker, so that its frames to other owners stand behind those sums. Whether all is complete.
  Result<bool> advance_to_end();

  // Before the update: waits until all stages owned here are complete.
  Status finish(std::chrono::milliseconds timeout);

 private:
  struct Step {
    enum class Kind : std::uint8_t { kAdd, kStore, kSend, kUntilFinish };
    Kind kind;
    int peer;
    FrameHeader header;
    Buffer sums;
  };
  // One owned stage on its way.
  struct Owned {
    std::deque<Step> steps;  // a capture's end with its sum; a window's have a part that waits for finish()
    bool is_capture = false;
    std::optional<PieceReceiver> receiver;  // of the front step
  };
  struct SumKinds {
    FrameKind of_replicas;
    FrameKind of_groups;
  };

  std::deque<Step> steps_to_root(FrameHeader about, const SumKinds& kinds, const Buffer& sums) const;
  std::deque<Step> steps_of(const FrameHeader& about, const StageLayout& layout, const Buffer& sums) const;
  FrameHeader about(std::int64_t window, int round, int stage) const;
  bool sends_to_owner(FrameHeader about, FrameKind kind, const Buffer& sums);
  bool one_owner_of_tied() const;

  // Runs steps up to finish()'s part, or to the end of it. Without a timeout it stops where it would have to wait, and
  // returns false.
  Result<bool> advance(Owned& owned, std::optional<std::chrono::milliseconds> timeout);
  Status advance_all(std::chrono::milliseconds timeout);
  void receive(const Step& step, std::optional<PieceReceiver>& receiver);
  void forget_ended();
  void pass_sums();
  void add_tied_locally();

  Transport& transport_;
  const scheduler::Schedule& schedule_;
  Accumulation accumulation_;
  FrameHeader job_;
  DeviceMemory& memory_;
  Channel channel_;
  bool is_past_sums_ = false;    // advance_to_end() has come to tied sums and totals
  std::vector<Buffer> staging_;  // for good: what came and went with the frames would be allocated at any time
  // In the order they were started, which is the same on all workers that share a link.
  std::list<Owned> active_;
  std::vector<Buffer> tied_here_;  // where one worker owns both tied parameters and adds them itself
};

// The group whose owner of the stage ends with the sum over all groups.
int root_group_of(const scheduler::Schedule& schedule, int stage);

}  // namespace everstep::trainer
