#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

Status Worker::begin_copies() {
  if (hooks_.copies == nullptr) {
    return options_.guards.empty() ? Status() : invalid_argument("guards without a place for their copies");
  }
  EVERSTEP_TRY(CopyKeeper::check_guards(options_, shape_));
  copies_ = std::make_unique<CopyKeeper>(transport_, options_, shape_, layouts_, *hooks_.copies, memory_);
  add_version_to_copies();
  return {};
}

// At a window's start, also if training goes on inside it: that much would be run again.
void Worker::add_version_to_copies() {
  if (!copies_) return;
  ResumePoint resume;
  resume.version = {updates()};
  resume.position = {updates() * options_.schedule.window};
  resume.applied = applied_;
  resume.skipped_in_a_row = skipped_in_a_row_;
  resume.clip_scale = clip_scale_;
  std::copy_if(history_.begin(), history_.end(), std::back_inserter(resume.history),
               [&](const WindowHistory& entry) { return entry.window < updates(); });
  copies_->add(std::move(resume), owned_state());
}

// The buffers that are trained on. They change at the next step, which comes after keep_newest().
std::vector<StagedStage> Worker::owned_state() {
  std::vector<StagedStage> owned;
  for (Chunk& chunk : chunks_) {
    if (!chunk.optimizer) continue;
    StageState state;
    state.weights = adopts_next_ ? chunk.next_weights : chunk.memory.weights;
    if (options_.stash) {  // it swaps its weights at backwards: a copy is kept and travels
      copy_into(memory_, chunk.steady_weights, state.weights);
      state.weights = chunk.steady_weights;
    }
    state.first_moment = chunk.optimizer->first_moment();
    state.second_moment = chunk.optimizer->second_moment();
    state.master = chunk.optimizer->master();
    owned.push_back({chunk.stage, layouts_[chunk.stage], std::move(state)});
  }
  return owned;
}

void Worker::bring_copies_home() const {
  if (copies_) hooks_.copies->end();
}

Status Worker::finish_copies() { return copies_ ? copies_->finish(options_.peer_timeout) : Status(); }

void Worker::keep_newest_copy() {
  if (copies_) copies_->keep_newest();
}

// A death after the end of a run is covered too: nobody ends before all guards have the last version.
Status Worker::end_copies() {
  if (!copies_) return {};
  EVERSTEP_TRY(finish_copies());
  FrameHeader header = job_of(options_);
  header.window = updates();
  const std::vector<RecordCapacity> nothing(static_cast<std::size_t>(plan_workers()));
  EVERSTEP_TRY(exchange_records(transport_, header, nothing, {}, options_.peer_timeout));
  return {};
}

}  // namespace everstep::trainer
