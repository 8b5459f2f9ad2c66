#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/worker.h"

namespace everstep::trainer {

Status Worker::update(const scheduler::Op& op) {
  if (adopts_next_) {
    adopt_next_weights();
    return {};
  }
  EVERSTEP_TRY(reduction_.finish(options_.peer_timeout));
  hand_over_capture();
  EVERSTEP_TRY(finish_copies());
  FrameHeader header = job_of(options_);
  header.window = op.window;
  auto records = exchange_records(transport_, header, capacities_, record_of(op.window), options_.peer_timeout);
  recorder_.input_ready(hooks_.now());
  if (!records) return records.error();
  EVERSTEP_TRY(check_replicas(*records, op.window));
  keep_newest_copy();
  const UpdateDecision decision = decide_update(shape_, layouts_, *records);
  const bool saves = next_cut(decision, op.window).at_update;
  const bool live = is_asynchronous(options_.schedule.kind) && op.window < stream_->last_window();
  if (saves && live) stage_previous_weights();
  if (options_.stash) stash_weights();
  if (decision.finite) {
    apply(decision, op.window);
    EVERSTEP_TRY(share_weights(op.window));
  }
  zero_gradients(op.window, !decision.finite);
  if (decision.stop != WindowStop::kNo) {
    stream_->end_after(last_certain_window());
    stop_ = std::max(stop_, decision.stop);
  }
  version_ = version_.next();
  report(decision, op.window);
  add_version_to_copies();
  save_is_due_ = saves && op.window == stream_->last_window();
  if (saves && !save_is_due_) save_at_update(live ? CutKind::kLive : CutKind::kFlush, std::nullopt);
  return {};
}

void Worker::stash_weights() {
  for (Chunk& chunk : chunks_) {
    std::memcpy(chunk.previous_weights.data, chunk.memory.weights.data, chunk.memory.weights.size);
  }
}

UpdateRecord Worker::record_of(std::int64_t window) {
  UpdateRecord record;
  for (Chunk& chunk : chunks_) {
    const bool overflowed = chunk.compute->take_overflow(static_cast<int>(window % 2));
    record.finite = record.finite && !overflowed && !std::exchange(chunk.overflowed, false);
    if (compares_replicas(window)) record.weight_hashes.push_back(hooks_.hash_weights(chunk.memory.weights));
    if (!chunk.optimizer) continue;
    const std::vector<double> sums = chunk.optimizer->sums_of_squares(chunk.memory.gradients[window % 2]);
    record.sums_of_squares.insert(record.sums_of_squares.end(), sums.begin(), sums.end());
  }
  record.losses = std::move(losses_[window]);
  losses_.erase(window);
  record.writer_idle = hooks_.checkpoints == nullptr || hooks_.checkpoints->idle();
  record.stop = hooks_.stops == nullptr ? WindowStop::kNo : hooks_.stops->at_window_end();
  const Tick now = hooks_.now();
  record.busy = std::exchange(busy_, 0);
  record.elapsed = now - std::exchange(last_exchange_, now);
  return record;
}

bool Worker::compares_replicas(std::int64_t window) const {
  return options_.compare_replicas_every > 0 && (window + 1) % options_.compare_replicas_every == 0;
}

Status Worker::check_replicas(const std::vector<UpdateRecord>& records, std::int64_t window) const {
  const auto wrong = compares_replicas(window) ? find_wrong_replica(shape_, records) : std::nullopt;
  if (!wrong) return {};
  if (hooks_.on_wrong_replica) hooks_.on_wrong_replica(*wrong);
  // Everybody must come to know it, above all the one that it is about. What else is on its way need not arrive.
  constexpr std::chrono::milliseconds kLongEnough{1000};
  (void)transport_.flush(kLongEnough);
  return error_of(*wrong);
}

void Worker::apply(const UpdateDecision& decision, std::int64_t window) {
  const StepInput input{learning_rate_after(window), clip_scale(decision.gradient_norm, options_.adam.clip_norm),
                        ++applied_};
  for (Chunk& chunk : chunks_) {
    if (chunk.optimizer) chunk.optimizer->step(input, chunk.memory.gradients[window % 2], chunk.memory.weights);
  }
}

double Worker::learning_rate_after(std::int64_t window) const {
  return options_.learning_rate.at((window + 1) * options_.schedule.window * options_.model.minibatch);
}

// Owners send first and descending, as the backwards that follow will need them.
Status Worker::share_weights(std::int64_t window) {
  FrameHeader header = job_of(options_);
  header.kind = FrameKind::kWeights;
  header.window = window;
  header.version = version_.next();
  const int first_of_group = shape_.group_of(transport_.worker()) * shape_.depth();
  std::vector<PieceReceiver> receivers;
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    header.stage = chunk->stage;
    if (!chunk->optimizer) {
      const int owner = first_of_group + shape_.placement.owner_of(chunk->stage);
      receivers.emplace_back(transport_, owner, header, chunk->memory.weights);
      continue;
    }
    // A stashing worker swaps its weights at backwards, which need not wait for the delivery: a copy travels then.
    Buffer sent;
    options_.stash ? copy_into(sent, chunk->memory.weights) : static_cast<void>(sent = chunk->memory.weights);
    for (const int replica : shape_.placement.replicas_of(chunk->stage)) {
      const int peer = first_of_group + replica;
      if (peer != transport_.worker()) send_in_pieces(transport_, peer, header, sent);
    }
  }
  for (PieceReceiver& receiver : receivers) EVERSTEP_TRY(receiver.finish(options_.peer_timeout));
  return {};
}

// The optimizer has zeroed what it used.
void Worker::zero_gradients(std::int64_t window, bool owned_too) {
  for (Chunk& chunk : chunks_) {
    if (chunk.optimizer && !owned_too) continue;
    const Buffer& gradient = chunk.memory.gradients[window % 2];
    std::memset(gradient.data, 0, gradient.size);
  }
}

void Worker::report(const UpdateDecision& decision, std::int64_t window) {
  result_.steps = window + 1;
  if (!decision.finite) ++result_.skipped;
  StepReport& report = result_.last;
  report.step = window + 1;
  report.loss = decision.loss;
  report.gradient_norm = decision.gradient_norm;
  report.learning_rate = learning_rate_after(window);
  report.skipped = !decision.finite;
  report.busy = decision.busy;
  report.computed = decision.computed;
  report.at = hooks_.now();
  if (hooks_.on_step) hooks_.on_step(report);
  remember(window, decision.losses, !decision.finite);
}

// `losses` are those of the window's minibatches from its beginning.
void Worker::remember(std::int64_t window, const std::vector<double>& losses, bool skipped) {
  if (hooks_.checkpoints == nullptr) return;
  WindowHistory& entry = history_.emplace_back();
  entry.window = window;
  entry.first = stream_->first_minibatch_of(window);
  entry.end = static_cast<int>(losses.size());
  entry.flushed = stream_->pattern().starts_drained(window);
  entry.skipped = skipped;
  entry.generation = options_.generation;
  entry.plan = options_.plan_text;
  entry.losses.assign(losses.begin() + entry.first, losses.end());
}

}  // namespace everstep::trainer
