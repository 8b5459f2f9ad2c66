#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "trainer/loop/worker.h"
#include "trainer/update/host_memory.h"

namespace everstep::trainer {
namespace {

constexpr std::array<Buffer StageState::*, 7> kStateParts{
    &StageState::weights, &StageState::previous,  &StageState::first_moment, &StageState::second_moment,
    &StageState::master,  &StageState::gradients, &StageState::provisional};

}  // namespace

// ---- resuming ----

void Worker::start_from(const ResumePoint& resume) {
  const std::int64_t window = options_.schedule.window;
  EVERSTEP_CHECK(hooks_.restore != nullptr, "resuming needs a way to restore");
  EVERSTEP_CHECK(resume.position.value / window == resume.version.value, "a position outside its window");
  first_minibatch_ = resume.position.value % window;
  EVERSTEP_CHECK(static_cast<std::int64_t>(resume.losses.size()) == first_minibatch_, "losses of another position");
  applied_ = resume.applied;
  skipped_in_a_row_ = resume.skipped_in_a_row;
  clip_scale_ = resume.clip_scale;
  adopts_next_ = resume.continues_live && resume.version.value < options_.steps;
  EVERSTEP_CHECK(!adopts_next_ || (first_minibatch_ == 0 && resume.version.value > 0), "no version before this one");
  version_ = {resume.version.value - (adopts_next_ ? 1 : 0)};
  if (adopts_next_ && resume.continues_provisional) on_provisional_.insert(resume.version.value);
  last_cut_ = resume.position;
  result_.steps = resume.version.value;
  history_ = resume.history;
  EVERSTEP_CHECK(resume.in_sums.empty() || (first_minibatch_ == 0 && !adopts_next_),
                 "group sums begin with their window");
  for (const WindowHistory& range : resume.in_sums) {
    for (int i = range.first; i < range.end; ++i) {
      blanks_.push_back({{range.window * window + i}, range.losses[static_cast<std::size_t>(i - range.first)]});
    }
  }
  std::ranges::sort(blanks_, {}, &BlankMinibatch::position);
  if (transport_.worker() == 0) {
    for (const MinibatchLoss& each : resume.losses)
      losses_[resume.version.value].push_back({each.minibatch, each.loss});
  }
  capacities_[0].losses += resume.losses.size();
}

// From the checkpoint, or from the beginning. Where a device trains, the host fills memory of its own.
Status Worker::fill_chunk(Chunk& chunk) {
  StageState state;
  state.weights = chunk.memory.weights;
  if (adopts_next_) {
    chunk.next_weights = memory_.allocate_zeroed(chunk.memory.weights.size);
    state.weights = chunk.next_weights;
    (options_.resume->continues_provisional ? state.provisional : state.previous) =
        options_.resume->continues_provisional ? chunk.memory.provisional : chunk.memory.weights;
  }
  if (chunk.optimizer) {
    state.first_moment = chunk.optimizer->first_moment();
    state.second_moment = chunk.optimizer->second_moment();
    state.master = chunk.optimizer->master();
  }
  const bool has_sums = first_minibatch_ > 0 || (options_.resume && !options_.resume->in_sums.empty());
  if (has_sums && writes(chunk.stage)) state.gradients = chunk.memory.gradients[version_.value % 2];
  if (!state.weights.on_device()) return fill_on_host(chunk, state);

  StageState on_host;
  for (const auto part : kStateParts) {
    if ((state.*part).empty()) continue;
    on_host.*part = memory_.allocate_pinned((state.*part).size);
    host_memory().zero(on_host.*part);
  }
  EVERSTEP_TRY(fill_on_host(chunk, on_host));
  for (const auto part : kStateParts) {
    if (!(state.*part).empty()) memory_.copy(state.*part, on_host.*part);
  }
  wait_for(memory_.mark());
  return {};
}

Status Worker::fill_on_host(const Chunk& chunk, const StageState& state) const {
  const StageLayout& layout = layouts_[chunk.stage];
  if (options_.resume) return hooks_.restore(layout, state);
  if (hooks_.initialise_weights) hooks_.initialise_weights(layout, state.weights);
  if (!state.master.empty() && hooks_.initialise_master) hooks_.initialise_master(layout, state.master);
  return {};
}

// What the update did before the checkpoint was taken.
void Worker::adopt_next_weights() {
  if (options_.stash) stash_weights();
  for (Chunk& chunk : chunks_) {
    memory_.copy(chunk.memory.weights, chunk.next_weights);
    chunk.next_weights = {};
  }
  version_ = version_.next();
  adopts_next_ = false;
}

// ---- deciding ----

int Worker::rounds_from(std::int64_t first_minibatch) const {
  const scheduler::WindowSlice slice{0, static_cast<int>(first_minibatch), options_.schedule.window, true};
  return shape_.rounds_in(slice);
}

// Of a window that is run from its start.
int Worker::rounds_before_cut(bool starts_drained) const {
  return shape_.rounds_before_cut(shape_.request.first_window + (starts_drained ? 0 : 1));
}

DueCut Worker::next_cut(const UpdateDecision& decision, std::int64_t window) {
  if (hooks_.checkpoints == nullptr) return {};
  rounds_done_ += rounds_from(stream_->first_minibatch_of(window));
  const bool is_last = window + 1 == options_.steps;
  const int next_rounds = is_last ? 0 : rounds_from(0);
  DueCut due = due_cut(options_.checkpoints, Version{window + 1}, rounds_done_, next_rounds, rounds_before_cut(false));
  if (due && !decision.all_idle) {
    const std::int64_t rounds = due.after_round ? *due.after_round + 1 : 0;
    const bool is_saved_anyway = is_last && options_.checkpoints.at_end;
    const Position position{(window + 1) * options_.schedule.window + rounds * super_round()};
    if (!is_saved_anyway) hooks_.checkpoints->skipped(position);
    due = {};
  }
  expect_capture(window + 1, due.after_round);
  return due;
}

void Worker::expect_capture(std::int64_t window, std::optional<int> round) {
  capture_.reset();
  if (hooks_.checkpoints == nullptr || !round) return;
  ExpectedCapture& capture = capture_.emplace();
  capture.window = window;
  capture.round = *round;
  capture.chunks_left = static_cast<int>(chunks_.size());
  capture.cut.kind = CutKind::kInWindow;
  capture.cut.version = {window};
}

// ---- taking ----

// The root group's owners end with the sums of gradients; they write everything else too.
bool Worker::writes(int stage) const {
  return owns(stage) && shape_.group_of(transport_.worker()) == root_group_of(shape_, stage);
}

bool Worker::is_expected(const scheduler::Op& capture) const {
  return capture_ && capture_->window == capture.window && capture_->round == capture.round;
}

void Worker::capture(const scheduler::Op& op) {
  if (!is_expected(op)) return;
  EVERSTEP_CHECK(version_.value == op.window, "a capture before the window's weights are in place: " + to_string(op));
  Chunk& chunk = chunk_of(op.stage);
  const auto parity = static_cast<int>(op.window % 2);
  StagedCut& cut = capture_->cut;
  capture_->overflowed.add(chunk.overflowed[parity]);
  StageState& staged = staging_[op.stage];
  staged.previous = {};  // no part of this cut
  staged.provisional = {};
  Buffer sums = writes(op.stage) ? std::exchange(staged.gradients, {}) : Buffer{};
  copy_into(memory_, sums, chunk.memory.gradients[parity]);
  capture_->sums[op.stage] = sums;
  if (writes(op.stage)) {
    stage_state(chunk, cut);
    cut.stages.back().state.gradients = std::move(sums);
  }
  if (--capture_->chunks_left == 0) reduce_capture();
  cut.position = {op.window * options_.schedule.window + stream_->first_minibatch_of(op.window) +
                  (op.round + 1) * super_round()};
  cut.began_drained = stream_->pattern().starts_drained(op.window);
  cut.began_provisional = on_provisional_.contains(op.window);
}

// Chunks may be captured in another order on another worker; their sums travel in one order everywhere.
void Worker::reduce_capture() {
  const auto sums = std::exchange(capture_->sums, {});
  for (auto each = sums.rbegin(); each != sums.rend(); ++each) {
    reduction_.capture(capture_->window, capture_->round, each->first, each->second);
  }
  memory_.gather();
}

// As soon as its sums are complete and its losses are known.
void Worker::hand_over_capture() {
  if (!capture_ || capture_->chunks_left > 0 || reduction_.is_capturing() || !memory_.gathered()) return;
  const std::int64_t window = capture_->window;
  const std::int64_t end = capture_->cut.position.value - window * options_.schedule.window;
  StagedCut cut = std::move(capture_->cut);
  cut.usable = !capture_->overflowed.any() && !(sources_ && sources_->has_seen(window));
  capture_.reset();
  for (StagedStage& stage : cut.stages) {
    Buffer& sums = stage.state.gradients;
    if (sums.on_device()) {
      Buffer on_host;
      cut.is_here = copy_out_into(memory_, on_host, sums);
      sums = std::move(on_host);
    } else {
      staging_[stage.stage].gradients = sums;  // for the next cut
    }
  }
  for (const NotedLoss& loss : losses_[window]) {
    if (loss.minibatch < end) cut.losses.push_back({loss.minibatch, loss.loss.value()});
  }
  hand_over(std::move(cut));
}

// What the window that follows has run on so far; it runs on that again when the checkpoint is resumed.
void Worker::stage_weights_begun_on(std::int64_t window) {
  const bool provisional = on_provisional_.contains(window);
  for (const Chunk& chunk : chunks_) {
    if (!writes(chunk.stage)) continue;
    StageState& staged = staging_[chunk.stage];
    staged.gradients = {};  // no part of this cut
    (provisional ? staged.previous : staged.provisional) = {};
    copy_out_into(memory_, provisional ? staged.provisional : staged.previous,
                  provisional ? chunk.memory.provisional : chunk.memory.weights);
  }
}

void Worker::stage_state(const Chunk& chunk, StagedCut& cut) {
  StageState& staged = staging_[chunk.stage];
  copy_out_into(memory_, staged.master, chunk.optimizer->master());
  copy_out_into(memory_, staged.weights, chunk.memory.weights);
  copy_out_into(memory_, staged.first_moment, chunk.optimizer->first_moment());
  cut.is_here = copy_out_into(memory_, staged.second_moment, chunk.optimizer->second_moment());
  StageState state = staged;
  state.gradients = {};
  if (cut.kind != CutKind::kLive) state.previous = state.provisional = {};
  cut.stages.push_back({chunk.stage, layouts_[chunk.stage], std::move(state)});
}

void Worker::save_at_update(CutKind kind, std::optional<double> validation_loss) {
  StagedCut cut;
  cut.kind = kind;
  cut.validation_loss = validation_loss;
  cut.version = version_;
  cut.position = {version_.value * options_.schedule.window};
  for (const Chunk& chunk : chunks_) {
    if (writes(chunk.stage)) stage_state(chunk, cut);
  }
  hand_over(std::move(cut));
}

void Worker::hand_over(StagedCut cut) {
  const auto generation = static_cast<std::uint64_t>(options_.generation.value);
  cut.nonce = static_cast<std::uint32_t>(RandomStream(options_.lineage, generation).bits(cuts_++));
  cut.applied = applied_;
  cut.clip_scale = clip_scale_;
  cut.history = std::exchange(history_, {});
  last_cut_ = cut.position;
  hooks_.checkpoints->save(std::move(cut));
}

void Worker::save_if_due(std::optional<double> validation_loss) {
  if (std::exchange(save_is_due_, false)) save_at_update(CutKind::kFlush, validation_loss);
}

Status Worker::save_at_end(std::optional<double> validation_loss) {
  const std::int64_t first = options_.resume ? options_.resume->version.value : 0;
  if (hooks_.checkpoints == nullptr || !options_.checkpoints.at_end || updates() == first) return {};
  Status last = hooks_.checkpoints->finish();
  if (!last && last.error().code == ErrorCode::kCancelled) return last;
  const Position here{version_.value * options_.schedule.window};
  if (last.ok() && last_cut_ == here) return {};
  save_at_update(CutKind::kFlush, validation_loss);
  return hooks_.checkpoints->finish();
}

}  // namespace everstep::trainer
