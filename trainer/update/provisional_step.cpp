#include "trainer/update/provisional_step.h"

#include <algorithm>
#include <utility>

#include "trainer/update/sums.h"

namespace everstep::trainer {

ProvisionalStep::ProvisionalStep(Transport& transport, const scheduler::Schedule& schedule, Accumulation accumulation,
                                 const FrameHeader& job, DeviceMemory& memory, std::vector<Chunk> chunks)
    : transport_(transport),
      schedule_(schedule),
      job_(job),
      memory_(memory),
      chunks_(std::move(chunks)),
      reduction_(transport, schedule, accumulation, job, memory, Channel::kProvisional) {
  for (const Chunk& chunk : chunks_) {
    const std::size_t bytes = chunk.layout->elements * sum_bytes(accumulation);
    sums_[chunk.stage] = memory_.allocate_scratch(bytes);
    reduction_.expect_sums(bytes);
  }
}

FrameHeader ProvisionalStep::header_of(int stage) const {
  FrameHeader header = job_;
  header.kind = FrameKind::kWeights;
  header.window = window_;
  header.stage = stage;
  header.version = {window_};
  return header;
}

void ProvisionalStep::copy(std::int64_t window, int stage, const Buffer& gradients, const StepInput& input) {
  EVERSTEP_CHECK(phase_ == Phase::kIdle || (phase_ == Phase::kCopying && window_ == window),
                 "a provisional step before the end of the one before");
  phase_ = Phase::kCopying;
  window_ = window;
  input_ = input;
  copy_into(memory_, sums_[stage], gradients);
  if (++copied_ < chunks_.size()) return;
  copied_ = 0;
  phase_ = Phase::kSumming;
  // Chunks may be copied in another order on another worker; their sums travel in one order everywhere.
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    reduction_.start(window, chunk->stage, *chunk->layout, sums_.at(chunk->stage));
  }
}

Status ProvisionalStep::advance() {
  if (phase_ == Phase::kSumming) {
    const auto complete = reduction_.advance_to_end();
    if (!complete) return complete.error();
    if (*complete) share();
  }
  if (phase_ != Phase::kSharing) return {};
  for (auto receiver = receivers_.begin(); receiver != receivers_.end();) {
    const auto complete = receiver->second.advance();
    if (!complete) return complete.error();
    receiver = *complete ? receivers_.erase(receiver) : std::next(receiver);
  }
  if (receivers_.empty()) phase_ = Phase::kIdle;
  return {};
}

Status ProvisionalStep::take_part(std::chrono::milliseconds timeout) {
  EVERSTEP_CHECK(phase_ != Phase::kCopying, "a trial step before all sums were copied");
  if (phase_ != Phase::kSumming) return {};
  EVERSTEP_TRY(reduction_.finish(timeout));
  share();
  return {};
}

// What came of the step is sent; from others it is awaited: only now, behind all sums that they send here.
void ProvisionalStep::share() {
  const int first_of_group = schedule_.group_of(transport_.worker()) * schedule_.depth();
  for (const Chunk& chunk : chunks_) {
    const FrameHeader header = header_of(chunk.stage);
    if (chunk.optimizer == nullptr) {
      const int owner = first_of_group + schedule_.placement.owner_of(chunk.stage);
      receivers_.try_emplace(chunk.stage, transport_, owner, header, chunk.provisional, Channel::kProvisional);
      continue;
    }
    chunk.optimizer->try_step(input_, sums_.at(chunk.stage), chunk.weights, chunk.provisional);
    for (const int replica : schedule_.placement.replicas_of(chunk.stage)) {
      const int peer = first_of_group + replica;
      if (peer != transport_.worker()) {
        send_in_pieces(transport_, peer, header, chunk.provisional, Channel::kProvisional);
      }
    }
  }
  phase_ = Phase::kSharing;
}

Status ProvisionalStep::finish(int stage, std::chrono::milliseconds timeout) {
  if (const auto receiver = receivers_.find(stage); receiver != receivers_.end()) {
    EVERSTEP_TRY(receiver->second.finish(timeout));
    receivers_.erase(receiver);
  }
  return {};
}

Status ProvisionalStep::finish_all(std::chrono::milliseconds timeout) {
  EVERSTEP_CHECK(has_taken_part(), "the end of a provisional step that this worker took no part in");
  for (auto receiver = receivers_.begin(); receiver != receivers_.end(); receiver = receivers_.erase(receiver)) {
    EVERSTEP_TRY(receiver->second.finish(timeout));
  }
  phase_ = Phase::kIdle;
  return {};
}

}  // namespace everstep::trainer
