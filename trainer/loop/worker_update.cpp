#include <algorithm>
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

Status Worker::update(const scheduler::Op& op) {
  if (adopts_next_) {
    adopt_next_weights();
    decide_provisional(op.window + 1);
    return {};
  }
  EVERSTEP_TRY(finish_provisional());
  EVERSTEP_TRY(reduction_.finish(options_.peer_timeout));
  hand_over_capture();
  const NotedRecord noted = note_record(op.window);
  memory_.gather();
  EVERSTEP_TRY(finish_copies());
  memory_.wait_gathered();
  hand_over_capture();
  FrameHeader header = job_of(options_);
  header.window = op.window;
  auto records = exchange_records(transport_, header, capacities_, record_of(op.window, noted), options_.peer_timeout);
  recorder_.input_ready(hooks_.now());
  if (!records) return records.error();
  EVERSTEP_TRY(check_replicas(*records, op.window));
  const UpdateDecision decision = decide_update(shape_, layouts_, *records);
  const std::optional<Anomaly> anomaly = anomaly_of(*records, decision, op.window);
  if (anomaly) EVERSTEP_TRY(stop_for(*anomaly));
  keep_newest_copy();
  const bool saves = next_cut(decision, op.window).at_update;
  const bool live = is_asynchronous(options_.schedule.kind) && op.window < stream_->last_window();
  if (saves && live) stage_weights_begun_on(op.window + 1);
  if (options_.stash) stash_weights();
  if (!anomaly) {
    apply(decision, op.window);
    EVERSTEP_TRY(share_weights(op.window));
  }
  zero_gradients(op.window, anomaly.has_value());
  if (decision.stop != WindowStop::kNo) {
    stream_->end_after(last_certain_window());
    agreed_last_window_ = std::min(agreed_last_window_, last_certain_window());
    stop_ = std::max(stop_, decision.stop);
  }
  version_ = version_.next();
  is_reducing_ = false;
  clip_scale_ = anomaly ? 1 : clip_scale(decision.gradient_norm, options_.adam.clip_norm);
  report(decision, op.window, anomaly);
  on_provisional_.erase(op.window);
  decide_provisional(op.window + 1);
  add_version_to_copies();
  save_is_due_ = saves && op.window == stream_->last_window();
  if (saves && !save_is_due_) save_at_update(live ? CutKind::kLive : CutKind::kFlush, std::nullopt);
  return check_skipped_in_a_row();
}

// All workers count alike, also those that came later: none has to be told.
Status Worker::check_skipped_in_a_row() const {
  const std::int64_t most = options_.anomalies.most_in_a_row;
  if (most == 0 || skipped_in_a_row_ < most) return {};
  const StepReport& last = result_.last;
  let_everybody_know();
  return invalid_argument(std::to_string(skipped_in_a_row_) + " updates in a row were skipped, the last one at step " +
                              std::to_string(last.step) + ": " +
                              skip_reason(last.norm_limit, last.gradient_norm, options_.accumulation),
                          "try a lower --lr, --clip or other data; --max-skipped-updates=0 never ends a run for this");
}

void Worker::stash_weights() {
  for (Chunk& chunk : chunks_) {
    memory_.copy(chunk.previous_weights, chunk.memory.weights);
  }
}

NotedRecord Worker::note_record(std::int64_t window) {
  NotedRecord noted;
  for (Chunk& chunk : chunks_) {
    noted.overflowed.add(std::exchange(chunk.overflowed[window % 2], {}));
    if (compares_replicas(window)) noted.weight_hashes.push_back(hash_of(chunk.memory.weights));
    if (!chunk.optimizer) continue;
    const auto sums = chunk.optimizer->sums_of_squares(chunk.memory.gradients[window % 2]);
    noted.sums_of_squares.insert(noted.sums_of_squares.end(), sums.begin(), sums.end());
  }
  return noted;
}

Noted<std::uint64_t> Worker::hash_of(const Buffer& weights) const {
  return weights.on_device() ? memory_.hash(weights) : hooks_.hash_weights(weights);
}

// What was noted is known by now.
UpdateRecord Worker::record_of(std::int64_t window, const NotedRecord& noted) {
  count_ended_spans();
  UpdateRecord record;
  record.finite = !noted.overflowed.any();
  for (Chunk& chunk : chunks_) record.stage_times.push_back(chunk.clock.take());
  for (const Noted<double>& sum : noted.sums_of_squares) record.sums_of_squares.push_back(sum.value());
  for (const Noted<std::uint64_t>& hash : noted.weight_hashes) record.weight_hashes.push_back(hash.value());
  if (const auto source = sources_ ? sources_->take(window) : std::nullopt) {
    record.source = static_cast<int>(source->value - window * options_.schedule.window);
  }
  record.losses = take_losses(window);
  record.writer_idle = hooks_.checkpoints == nullptr || hooks_.checkpoints->idle();
  record.stop = hooks_.stops == nullptr ? WindowStop::kNo : hooks_.stops->at_window_end();
  const Tick now = hooks_.now();
  record.busy = std::exchange(busy_, 0);
  record.elapsed = now - std::exchange(last_exchange_, now);
  return record;
}

std::vector<MinibatchLoss> Worker::take_losses(std::int64_t window) {
  std::vector<MinibatchLoss> losses;
  for (const NotedLoss& noted : losses_[window]) losses.push_back({noted.minibatch, noted.loss.value()});
  losses_.erase(window);
  return losses;
}

bool Worker::compares_replicas(std::int64_t window) const {
  return options_.compare_replicas_every > 0 && (window + 1) % options_.compare_replicas_every == 0;
}

Status Worker::check_replicas(const std::vector<UpdateRecord>& records, std::int64_t window) const {
  const auto wrong = compares_replicas(window) ? find_wrong_replica(shape_, records) : std::nullopt;
  if (!wrong) return {};
  if (hooks_.on_wrong_replica) hooks_.on_wrong_replica(*wrong);
  let_everybody_know();
  return error_of(*wrong);
}

// Above all the one that it is about. What else is on its way need not arrive.
void Worker::let_everybody_know() const {
  constexpr std::chrono::milliseconds kLongEnough{1000};
  (void)transport_.flush(kLongEnough);
}

std::optional<Anomaly> Worker::anomaly_of(const std::vector<UpdateRecord>& records, const UpdateDecision& decision,
                                          std::int64_t window) const {
  const AnomalyPolicy& policy = options_.anomalies;
  const double limit = policy.window == window ? policy.norm_limit : norms_.limit(policy.explode_factor);
  return find_anomaly(shape_, records, decision, window, limit, stream_->pattern().starts_drained(window));
}

// Before the gradients are applied, if the window is to be run again.
Status Worker::stop_for(const Anomaly& anomaly) const {
  const AnomalyPolicy& policy = options_.anomalies;
  const bool is_last_try = policy.skips && policy.window == anomaly.window;
  const bool follows_another = skipped_in_a_row_ > 0;  // also after a resume
  if (!policy.stops || is_last_try || follows_another) return {};
  if (hooks_.on_anomaly) hooks_.on_anomaly(anomaly);
  let_everybody_know();
  return error_of(anomaly);
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
    options_.stash ? copy_into(memory_, sent, chunk->memory.weights) : static_cast<void>(sent = chunk->memory.weights);
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
    memory_.zero(chunk.memory.gradients[window % 2]);
  }
}

void Worker::report(const UpdateDecision& decision, std::int64_t window, const std::optional<Anomaly>& skipped_for) {
  result_.steps = window + 1;
  if (skipped_for) ++result_.skipped;
  skipped_in_a_row_ = skipped_for ? skipped_in_a_row_ + 1 : 0;
  // Those of skipped windows, too: a norm that stays large is the usual one after a while.
  if (decision.finite) norms_.add(decision.gradient_norm);
  StepReport& report = result_.last;
  report.step = window + 1;
  report.loss = decision.loss;
  report.gradient_norm = decision.gradient_norm;
  report.learning_rate = learning_rate_after(window);
  report.skipped = skipped_for.has_value();
  report.norm_limit = skipped_for ? skipped_for->norm_limit : 0;
  report.skipped_in_all = window + 1 - applied_;
  report.skipped_in_a_row = skipped_in_a_row_;
  report.busy = decision.busy;
  report.computed = decision.computed;
  report.stage_times = decision.stage_times;
  report.at = hooks_.now();
  if (hooks_.on_step) hooks_.on_step(report);
  for (WindowHistory& entry : remember(window, decision.losses)) {
    entry.skipped = skipped_for.has_value();
    if (skipped_for) entry.norm_limit = skipped_for->norm_limit;
  }
}

// `losses` are those of the window's minibatches from its beginning. What was remembered; nothing, if nobody wants to
// know.
std::span<WindowHistory> Worker::remember(std::int64_t window, const std::vector<double>& losses) {
  if (hooks_.checkpoints == nullptr) return {};
  const std::size_t before = history_.size();
  int next = stream_->first_minibatch_of(window);
  const auto ran_up_to = [&](int end) {
    if (next < end) history_.push_back(run_here(window, {next, end}, losses));
  };
  if (has_sums_of(window)) {
    for (const WindowHistory& range : options_.resume->in_sums) {
      ran_up_to(range.first);
      history_.push_back(range);
      next = range.end;
    }
  }
  ran_up_to(static_cast<int>(losses.size()));
  return std::span(history_).subspan(before);
}

// `losses` as above.
WindowHistory Worker::run_here(std::int64_t window, const scheduler::MinibatchRange& range,
                               const std::vector<double>& losses) const {
  WindowHistory entry;
  entry.window = window;
  entry.first = range.first;
  entry.end = range.end;
  entry.flushed = stream_->pattern().starts_drained(window);
  entry.provisional = on_provisional_.contains(window);
  entry.generation = options_.generation;
  entry.plan = options_.plan_text;
  entry.losses.assign(losses.begin() + range.first, losses.begin() + range.end);
  for (const BlankMinibatch& blank : options_.blanks) {
    const std::int64_t minibatch = blank.position.value - window * options_.schedule.window;
    const bool is_inside = entry.first <= minibatch && minibatch < entry.end;
    if (blank.left_out && is_inside) entry.left_out.push_back(static_cast<int>(minibatch));
  }
  return entry;
}

}  // namespace everstep::trainer
