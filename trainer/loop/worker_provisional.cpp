// The provisional step: which windows make one, and who reads what comes of it.
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

Status Worker::prepare_provisional() {
  if (options_.schedule.provisional == 0) return {};
  if (options_.stash) {
    return invalid_argument("a provisional step cannot be had with --stash",
                            "with it a backward meets other weights than its forward on purpose");
  }
  std::vector<ProvisionalStep::Chunk> chunks;
  for (const Chunk& chunk : chunks_) {
    chunks.push_back(
        {chunk.stage, &layouts_[chunk.stage], chunk.optimizer.get(), chunk.memory.weights, chunk.memory.provisional});
  }
  provisional_ = std::make_unique<ProvisionalStep>(transport_, shape_, options_.accumulation, job_of(options_), memory_,
                                                   std::move(chunks));
  return {};
}

// Before the window's first copy, by what all workers know then: a stop inside a window, of which some hear before
// others, only leaves out what comes after it. What a group kept belongs to no round of its window.
void Worker::decide_provisional(std::int64_t window) {
  makes_provisional_.reset();
  if (provisional_ && window < agreed_last_window_ && !has_sums_of(window)) makes_provisional_ = window;
}

void Worker::copy_for_provisional(const scheduler::Op& op) {
  if (!makes_provisional(op.window)) return;
  EVERSTEP_CHECK(version_.value == op.window, "a copy before the window's weights are in place: " + to_string(op));
  const Buffer& sums = chunk_of(op.stage).memory.gradients[op.window % 2];
  provisional_->copy(op.window, op.stage, sums, provisional_input(op.window));
  on_provisional_.insert(op.window + 1);
}

// As the window's update will step, if its gradient is clipped as the last one was and if the rounds that are summed
// are like all.
StepInput Worker::provisional_input(std::int64_t window) const {
  scheduler::ScheduleRequest request = options_.schedule;
  request.first_window = window;
  request.first_minibatch = stream_->first_minibatch_of(window);
  const int summed = provisional_minibatches(request).value();
  const double share = static_cast<double>(request.window) / static_cast<double>(summed);
  return {learning_rate_after(window), clip_scale_ * share, applied_ + 1};
}

bool Worker::reads_provisional(const scheduler::Op& op) const {
  return version_.value < op.window && on_provisional_.contains(op.window);
}

// Before the op waits for its input.
Status Worker::select_weights(Chunk& chunk, const scheduler::Op& op) {
  const bool provisional = reads_provisional(op);
  chunk.compute->select_weights(provisional ? WeightSet::kProvisional : WeightSet::kWeights);
  return provisional && provisional_ ? provisional_->finish(chunk.stage, options_.peer_timeout) : Status();
}

bool Worker::provisional_can_begin(const scheduler::Op& op) const {
  if (!provisional_) return true;
  if (op.kind == scheduler::OpKind::kTrialStep) return !makes_provisional(op.window) || provisional_->has_taken_part();
  return !is_compute(op) || !reads_provisional(op) || provisional_->is_here(op.stage);
}

// Before anything changes that the step is made from, and before this worker leaves: others may wait for its part.
Status Worker::finish_provisional() {
  return provisional_ && !group_stop_ ? provisional_->finish_all(options_.peer_timeout) : Status();
}

}  // namespace everstep::trainer
