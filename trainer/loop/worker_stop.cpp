#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {
namespace {

// Between two looks at the transport, which may end while a worker waits for word from outside.
constexpr std::chrono::milliseconds kWaitAtOnce{10};

}  // namespace

// The super-round that an op belongs to. A window's reduces and its update belong to its last one, also on a worker
// that has no minibatch in that.
std::int64_t Worker::round_of(const scheduler::Op& op) const {
  const bool is_of_the_end = op.kind == scheduler::OpKind::kStartReduce || op.kind == scheduler::OpKind::kUpdate;
  return is_of_the_end ? rounds_.last_of(op.window) : rounds_.number_of({op.window, op.round});
}

// Nothing after it may be waited for ahead: a stop may yet leave it out.
SuperRounds::Place Worker::last_certain_round() const {
  const SuperRounds::Place at_window_end{last_certain_window(), std::numeric_limits<int>::max()};
  auto certain = last_round_;
  if (!certain && hooks_.stops != nullptr) certain = hooks_.stops->certain_round();
  return certain ? std::min(at_window_end, rounds_.place_of(*certain)) : at_window_end;
}

// Waits, if a stop is being agreed on, until it is known whether the op is still to be run. If it is not, the stream
// ends earlier from now on.
Status Worker::wait_to_start(const scheduler::Op& op) {
  const std::int64_t round = round_of(op);
  if (round <= started_ || last_round_) return {};
  const auto may_start = [&] { return hooks_.stops == nullptr || hooks_.stops->start_round(round, kWaitAtOnce); };
  for (std::chrono::milliseconds waited{0}; !may_start(); waited += kWaitAtOnce) {
    const auto last = hooks_.stops->last_round();
    if (last && round > *last) {
      end_after(*last);
      return {};
    }
    if (const Status alive = transport_.status(); !alive) return go_on_in_group(alive.error());
    if (waited >= options_.peer_timeout) {
      return Error{ErrorCode::kDeadlineExceeded,
                   "nobody told after which super-round to stop, " + std::to_string(started_) + " was promised", ""};
    }
  }
  started_ = round;
  const Tick now = hooks_.now();
  if (round_began_ > 0) round_time_ = now - round_began_;
  round_began_ = now;
  return {};
}

// The first super-round not before this one that a stop can come after. Group sums belong to no position inside their
// window: a stop there comes at its end. Other windows can be cut when all that met the weights before is complete.
std::int64_t Worker::last_round_of_stop(std::int64_t round) const {
  const std::int64_t window = rounds_.place_of(round).window;
  if (window < stream_->first_window()) return round;
  if (has_sums_of(window)) return rounds_.last_of(window);
  const std::int64_t first = rounds_.number_of({window, stream_->pattern().rounds_before_cut(window) - 1});
  return std::min(std::max(round, first), rounds_.last_of(window));
}

void Worker::end_after(std::int64_t round) {
  round = last_round_of_stop(round);
  last_round_ = round;
  stop_ = std::max(stop_, WindowStop::kHandOver);
  if (nothing_is_left()) return;
  const SuperRounds::Place place = rounds_.place_of(round);
  if (rounds_.ends_window(round)) {
    stream_->end_after(place.window);
  } else {
    stream_->end_after_round(place.window, place.round);
  }
}

RunEnd Worker::end() const {
  if (group_stop_) return RunEnd::kGroupStop;
  if (!is_inside_window() && updates() >= options_.steps) return RunEnd::kAllSteps;
  return stop_ == WindowStop::kSaveAndEnd && !is_inside_window() ? RunEnd::kSaveAndEnd : RunEnd::kHandOver;
}

// ---- a stop inside a window ----

Status Worker::end_inside_window() {
  if (!is_inside_window()) return {};
  EVERSTEP_TRY(finish_provisional());
  EVERSTEP_TRY(sum_unfinished_window());
  memory_.wait_gathered();
  hand_over_capture();
  const std::int64_t window = version_.value;
  const std::int64_t end = rounds_.end_of(*last_round_).value - window * options_.schedule.window;
  const UpdateRecord mine = record_of_unfinished(window);
  FrameHeader header = job_of(options_);
  header.window = window;
  const auto records = exchange_records(transport_, header, capacities_, mine, options_.peer_timeout);
  if (!records) return records.error();
  for (const UpdateRecord& record : *records) unfinished_.finite = unfinished_.finite && record.finite;
  const std::vector<double> losses = losses_in_order(*records);
  EVERSTEP_CHECK(std::ssize(losses) == end, "losses of other minibatches than those before the stop");
  for (int i = 0; i < end; ++i) unfinished_.losses.push_back({i, losses[i]});
  remember(window, losses);
  return {};
}

UpdateRecord Worker::record_of_unfinished(std::int64_t window) {
  memory_.wait_gathered();
  UpdateRecord record;
  const auto overflowed = [&](const Chunk& chunk) { return chunk.overflowed[window % 2].any(); };
  record.finite = std::none_of(chunks_.begin(), chunks_.end(), overflowed) && !(sources_ && sources_->has_seen(window));
  record.sums_of_squares.assign(capacities_[transport_.worker()].sums_of_squares, 0);  // nobody steps
  record.losses = take_losses(window);
  return record;
}

// At the writers of the stages, as a capture does; the buffers themselves, since nothing is added to them any more.
Status Worker::sum_unfinished_window() {
  const SuperRounds::Place place = rounds_.place_of(*last_round_);
  EVERSTEP_CHECK(version_.value == place.window, "a stop before the window's weights are in place");
  const auto parity = static_cast<int>(place.window % 2);
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    reduction_.capture(place.window, place.round, chunk->stage, chunk->memory.gradients[parity]);
  }
  return reduction_.finish(options_.peer_timeout);
}

// ---- what is left ----

EndState Worker::take_end_state() {
  if (adopts_next_) adopt_next_weights();
  EndState end_state;
  end_state.resume = std::move(unfinished_);
  const bool inside = is_inside_window();
  end_state.resume.position =
      inside ? rounds_.end_of(*last_round_) : Position{version_.value * options_.schedule.window};
  end_state.resume.version = version_;
  end_state.resume.applied = applied_;
  end_state.resume.skipped_in_a_row = skipped_in_a_row_;
  end_state.resume.clip_scale = clip_scale_;
  end_state.resume.history = std::exchange(history_, {});
  for (const Chunk& chunk : chunks_) {
    StageState state;
    state.weights = memory_.fetch(chunk.memory.weights);
    if (chunk.optimizer) {
      state.first_moment = memory_.fetch(chunk.optimizer->first_moment());
      state.second_moment = memory_.fetch(chunk.optimizer->second_moment());
      state.master = memory_.fetch(chunk.optimizer->master());
    }
    const bool has_sums = group_stop_ ? owns(chunk.stage) : inside && writes(chunk.stage);
    if (has_sums) state.gradients = memory_.fetch(chunk.memory.gradients[version_.value % 2]);
    end_state.stages.push_back({chunk.stage, layouts_[chunk.stage], std::move(state)});
  }
  return end_state;
}

}  // namespace everstep::trainer
