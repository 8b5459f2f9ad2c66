#include "trainer/loop/worker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/update/host_memory.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {

using scheduler::Op;
using scheduler::OpKind;

Result<std::unique_ptr<Worker>> Worker::make(const TrainOptions& options, const DataSource& data, Transport& transport,
                                             const TrainHooks& hooks) {
  auto shape = shape_of(options, transport);
  if (!shape) return shape.error();
  std::unique_ptr<Worker> worker(new Worker(options, transport, hooks, *std::move(shape)));
  EVERSTEP_TRY(worker->prepare(data));
  return worker;
}

Result<scheduler::Schedule> Worker::shape_of(const TrainOptions& options, const Transport& transport) {
  EVERSTEP_TRY(check(options.model));
  EVERSTEP_TRY(check(options.learning_rate));
  scheduler::ScheduleRequest request = options.schedule;
  request.windows = 1;
  auto stream = OpStream::make(request, transport.worker());
  if (!stream) return stream.error();
  const scheduler::Schedule& shape = stream->pattern();
  const auto workers = static_cast<int>(shape.workers.size());
  if (workers > transport.workers() || transport.worker() >= workers) {
    return invalid_argument("the plan is for " + std::to_string(workers) + " workers, but there are " +
                            std::to_string(transport.workers()) + ", and this is number " +
                            std::to_string(transport.worker()));
  }
  const scheduler::Cuts& cuts = options.cuts;
  const bool rising = std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end();
  if (static_cast<int>(cuts.size()) != shape.placement.stages() + 1 || cuts.front() != 0 ||
      cuts.back() != options.model.blocks() || !rising) {
    return invalid_argument("the cuts do not divide " + std::to_string(options.model.blocks()) + " blocks into " +
                            std::to_string(shape.placement.stages()) + " stages");
  }
  return shape;
}

Worker::Worker(const TrainOptions& options, Transport& transport, const TrainHooks& hooks, scheduler::Schedule shape)
    : options_(options),
      transport_(transport),
      hooks_(hooks),
      memory_(hooks.device != nullptr ? *hooks.device : host_memory()),
      shape_(std::move(shape)),
      reduction_(transport, shape_, options.accumulation, job_of(options), memory_),
      own_recorder_(kOpsKept),
      recorder_(hooks.recorder != nullptr ? *hooks.recorder : own_recorder_),
      rounds_(options.resume ? options.resume->position : Position{0}, options.schedule.window, super_round()),
      blanks_(options.blanks) {}

FrameHeader Worker::job_of(const TrainOptions& options) {
  FrameHeader header;
  header.lineage = options.lineage;
  header.generation = options.generation;
  return header;
}

Status Worker::prepare(const DataSource& data) {
  for (int stage = 0; stage < shape_.placement.stages(); ++stage) {
    layouts_.push_back(layout_of(options_.model, options_.cuts[stage], options_.cuts[stage + 1]));
  }
  capacities_ = record_capacities(shape_, layouts_, options_.compare_replicas_every > 0);
  if (options_.resume) start_from(*options_.resume);
  for (const int stage : shape_.placement.stages_on(shape_.device_of(transport_.worker()))) {
    auto chunk = make_chunk(stage, data);
    if (!chunk) return chunk.error();
    chunks_.push_back(std::move(chunk).value());
    reduction_.expect_sums(chunks_.back().memory.gradients[0].size);
  }
  if (options_.resume && !options_.resume->finite) chunks_.front().overflowed[version_.value % 2].add(true);
  if (options_.anomalies.stops) sources_.emplace();
  // Group sums belong to no position inside their window.
  if (!has_sums_of(updates())) {
    const int before_cut = rounds_before_cut(!adopts_next_);
    expect_capture(updates(), first_cut_inside(options_.checkpoints, 0, rounds_from(first_minibatch_), before_cut));
  }
  EVERSTEP_TRY(prepare_provisional());
  EVERSTEP_TRY(begin_copies());
  if (options_.group_stop_limit.count() > 0) transport_.need_only(group().all());
  last_exchange_ = hooks_.now();
  return {};
}

Result<Worker::Chunk> Worker::make_chunk(int stage, const DataSource& data) {
  Chunk chunk;
  chunk.stage = stage;
  const StageLayout& layout = layouts_[stage];
  chunk.memory.weights = memory_.allocate_zeroed(layout.elements * options_.model.weight_bytes());
  const std::size_t gradient_bytes = layout.elements * sum_bytes(options_.accumulation);
  chunk.memory.gradients[0] = memory_.allocate_zeroed(gradient_bytes);
  chunk.memory.gradients[1] = shape_.two_windows_meet(shape_.device_of(transport_.worker()), stage)
                                  ? memory_.allocate_zeroed(gradient_bytes)
                                  : chunk.memory.gradients[0];
  if (options_.schedule.provisional > 0) {
    chunk.memory.provisional = memory_.allocate_zeroed(chunk.memory.weights.size);
  }
  if (options_.stash) chunk.previous_weights = memory_.allocate_zeroed(chunk.memory.weights.size);
  if (owns(stage)) {
    const bool has_master = options_.model.precision == Precision::kBf16;
    Buffer master = has_master ? memory_.allocate_zeroed(layout.elements * sizeof(float)) : Buffer{};
    chunk.optimizer = std::make_unique<StageOptimizer>(layout, options_.model.precision, options_.accumulation,
                                                       options_.adam, std::move(master), memory_);
  }
  EVERSTEP_TRY(fill_chunk(chunk));
  chunk.compute = hooks_.make_stage(
      {options_.model, layout, chunk.memory, options_.accumulation, options_.schedule.window, &data, &memory_});
  return chunk;
}

Worker::Chunk& Worker::chunk_of(int stage) {
  const auto chunk =
      std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& candidate) { return candidate.stage == stage; });
  EVERSTEP_CHECK(chunk != chunks_.end(), "an op of a stage that this worker does not hold");
  return *chunk;
}

bool Worker::owns(int stage) const { return shape_.placement.owner_of(stage) == shape_.device_of(transport_.worker()); }

Status Worker::make_stream(std::int64_t windows) {
  scheduler::ScheduleRequest request = options_.schedule;
  request.first_window = version_.value;
  request.first_minibatch = static_cast<int>(std::exchange(first_minibatch_, 0));
  request.windows = static_cast<int>(windows);
  if (adopts_next_) {
    request.first_minibatch = request.window;
    ++request.windows;
  }
  // Which of the captures are taken is decided as the run goes.
  request.capture_every_rounds = options_.checkpoints.every_rounds > 0 ? 1 : 0;
  auto stream = OpStream::make(request, transport_.worker());
  if (!stream) return stream.error();
  stream_ = std::make_unique<OpStream>(*std::move(stream));
  agreed_last_window_ = stream_->last_window();
  decide_provisional(stream_->first_window());
  inputs_ =
      std::make_unique<InputQueue>(transport_, *stream_, job_of(options_), options_.model.boundary_bytes(), memory_);
  return {};
}

Status Worker::run(std::int64_t windows) {
  EVERSTEP_TRY(make_stream(windows));
  for (std::int64_t index = 0; index < stream_->size();) {
    EVERSTEP_TRY(wait_to_start(op_at(index)));
    if (index >= stream_->size() || nothing_is_left()) break;
    const Op op = op_at(index);
    if (stream_->leaves_out(op)) {
      ++index;
      continue;
    }
    inputs_->post_ahead(index, last_certain_round(), version_);
    if (const auto weights = weights_before(index, op)) {
      EVERSTEP_TRY(backward_weights(*weights));
    } else {
      EVERSTEP_TRY(run_op(index, op));
      ++index;
    }
    EVERSTEP_TRY(advance_others());
  }
  while (const auto weights = weights_.take_oldest()) EVERSTEP_TRY(backward_weights(*weights));
  return group_stop_ ? end_in_group() : end_inside_window();
}

// Between two ops.
Status Worker::advance_others() {
  if (group_stop_) return transport_.status();  // what is not of this group will never come
  Status advanced = reduction_.advance();
  if (advanced && provisional_) advanced = provisional_->advance();
  if (advanced && copies_) advanced = copies_->advance();
  if (advanced) hand_over_capture();
  if (advanced) advanced = transport_.status();  // a death is news also to a worker that waits for nobody
  return advanced ? advanced : go_on_in_group(advanced.error());
}

// A device tells by itself how long it took, when it has come so far.
void Worker::count_time(const OpRecord& record) {
  if (!span_) return count_time(record.op, record.end - record.started);
  span_->end();
  timed_ops_.push_back({record.op, std::move(span_)});
}

void Worker::count_time(const Op& op, Tick time) {
  busy_ += time;
  if (blank_at(stream_->position_of(op)) == nullptr) chunk_of(op.stage).clock.add(op.kind, time);
}

void Worker::count_ended_spans() {
  while (!timed_ops_.empty()) {
    const auto time = timed_ops_.front().span->length();
    if (!time) return;
    count_time(timed_ops_.front().op, *time);
    timed_ops_.pop_front();
  }
}

Status Worker::run_op(std::int64_t index, const Op& op) {
  recorder_.begin(op, hooks_.now());
  switch (op.kind) {
    case OpKind::kForward:
      EVERSTEP_TRY(forward(index, op));
      break;
    case OpKind::kBackward:
      EVERSTEP_TRY(backward(index, op));
      break;
    case OpKind::kStartReduce:
      is_reducing_ = true;
      reduction_.start(op.window, op.stage, layouts_[op.stage], chunk_of(op.stage).memory.gradients[op.window % 2]);
      break;
    case OpKind::kCapture:
      capture(op);
      break;
    case OpKind::kProvisional:
      copy_for_provisional(op);
      break;
    case OpKind::kTrialStep:
      if (makes_provisional(op.window)) EVERSTEP_TRY(provisional_->take_part(options_.peer_timeout));
      break;
    case OpKind::kUpdate:
      EVERSTEP_TRY(update(op));
      break;
    case OpKind::kBackwardWeights:
      EVERSTEP_CHECK(false, "an op that has no place in a list: " + to_string(op));
  }
  end_op();
  return {};
}

void Worker::end_op() {
  const OpRecord& record = recorder_.end(hooks_.now());
  if (is_of_minibatch(record.op)) {
    count_time(record);
    op_before_ = std::exchange(last_op_, memory_.mark());
  }
  if (hooks_.on_op) hooks_.on_op(record);
}

Status Worker::forward(std::int64_t index, const Op& op) {
  Chunk& chunk = chunk_of(op.stage);
  EVERSTEP_TRY(select_weights(chunk, op));
  auto input = take_input(index);
  if (!input) return input.error();
  const Position position = stream_->position_of(op);
  const Noted<bool> bad_input = not_finite(*input);
  auto output = forward_through(chunk, position, *std::move(input));
  if (!output) return output.error();
  if (sources_ && blank_at(position) == nullptr) {
    sources_->forward({op.window, op.stage, position}, {bad_input, not_finite(output->tensor)}, output->loss);
  }
  if (op.stage == shape_.placement.stages() - 1) {
    const auto minibatch = static_cast<int>(position.value - op.window * options_.schedule.window);
    losses_[op.window].push_back({minibatch, output->loss});
  }
  send_output(op, std::move(output->tensor));
  return {};
}

Result<StageCompute::Output> Worker::forward_through(Chunk& chunk, Position position, Buffer input) {
  if (const BlankMinibatch* blank = blank_at(position)) {
    return StageCompute::Output{memory_.allocate_zeroed(options_.model.boundary_bytes()), blank->loss};
  }
  chunk.forward_version[position.value] = version_;
  return chunk.compute->forward(position, std::move(input));
}

Status Worker::backward(std::int64_t index, const Op& op) {
  Chunk& chunk = chunk_of(op.stage);
  EVERSTEP_TRY(select_weights(chunk, op));
  auto gradient = take_input(index);
  if (!gradient) return gradient.error();
  const Position position = stream_->position_of(op);
  if (blank_at(position) != nullptr) {
    send_output(op, memory_.allocate_zeroed(options_.model.boundary_bytes()));
    return {};
  }
  const auto forward = chunk.forward_version.extract(position.value);
  EVERSTEP_CHECK(!forward.empty(), "a backward before its forward: " + to_string(op));
  const std::int64_t staleness = version_.value - forward.mapped().value;
  EVERSTEP_CHECK(staleness == 0 || staleness == 1, "weights changed twice between forward and " + to_string(op));
  const bool stashed = options_.stash && staleness == 1;
  const Noted<bool> bad_input = not_finite(*gradient);
  if (stashed) memory_.swap(chunk.memory.weights, chunk.previous_weights);
  const int parity = parity_of(op);
  auto input_gradient = chunk.compute->backward_input(position, *std::move(gradient), parity);
  if (stashed) memory_.swap(chunk.memory.weights, chunk.previous_weights);
  if (!input_gradient) return input_gradient.error();
  const SourceWatch::Tensors tensors{bad_input, not_finite(*input_gradient)};
  send_output(op, *std::move(input_gradient));
  weights_.add({weights_of(op), position, parity, tensors});
  return {};
}

// ---- the second halves of backwards ----

std::optional<WeightsOp> Worker::weights_before(std::int64_t index, const Op& op) {
  return weights_.take_before({op, closes_sums(op), [&] { return can_begin(index, op); }});
}

bool Worker::closes_sums(const Op& op) const {
  const bool is_of_the_end = op.kind == OpKind::kStartReduce || op.kind == OpKind::kUpdate;
  const bool is_copied = op.kind == OpKind::kProvisional && makes_provisional(op.window);
  return is_of_the_end || is_copied || (op.kind == OpKind::kCapture && is_expected(op));
}

// A host that is ahead of its device would nearly always find that the input has not come. So while the device has more
// than one op to do, the host waits for the input: it does not wait for the device, and has time.
bool Worker::can_begin(std::int64_t index, const Op& op) const {
  if (!has_passed(op_before_)) return true;
  if (!provisional_can_begin(op)) return false;
  return op.kind == OpKind::kUpdate ? reduction_.has_all_sums() : inputs_->has_come(index);
}

Status Worker::backward_weights(const WeightsOp& weights) {
  const auto& [op, position, parity, tensors] = weights;
  recorder_.begin(op, hooks_.now());
  span_ = memory_.begin_span();
  Chunk& chunk = chunk_of(op.stage);
  EVERSTEP_TRY(chunk.compute->backward_weights(position, parity));
  const Noted<bool> overflowed = chunk.compute->take_overflow(parity);
  chunk.overflowed[parity].add(overflowed);
  if (sources_) sources_->backward({op.window, op.stage, position}, tensors, overflowed);
  end_op();
  return {};
}

// Nobody looks where no anomaly stops the run.
Noted<bool> Worker::not_finite(const Buffer& tensor) const {
  if (!sources_ || tensor.empty()) return false;
  return memory_.not_finite(options_.model.precision, tensor);
}

const BlankMinibatch* Worker::blank_at(Position position) const {
  const auto found = std::ranges::lower_bound(blanks_, position, {}, &BlankMinibatch::position);
  return found != blanks_.end() && found->position == position ? &*found : nullptr;
}

Result<Buffer> Worker::take_input(std::int64_t index) {
  auto input = inputs_->take(index, patience());
  if (!input && go_on_in_group(input.error())) input = inputs_->take(index, patience());
  recorder_.input_ready(hooks_.now());
  span_ = memory_.begin_span();
  return input;
}

void Worker::send_output(const Op& op, Buffer output) {
  OutputTarget target = output_of(shape_, transport_.worker(), op, job_of(options_));
  if (target.to < 0) return;
  target.header.version = version_;
  target.header.length = output.size;
  transport_.send(target.to, Channel::kTensors, target.header, std::move(output));
}

// An asynchronous pipeline has started the next window before it agrees on a stop; a synchronous one has not.
std::int64_t Worker::last_certain_window() const {
  return version_.value + (is_asynchronous(options_.schedule.kind) ? 1 : 0);
}

void Worker::hand_over_weights() const {
  if (!hooks_.on_end) return;
  for (const Chunk& chunk : chunks_) {
    hooks_.on_end(chunk.stage, layouts_[chunk.stage], memory_.fetch(chunk.memory.weights));
  }
}

}  // namespace everstep::trainer
