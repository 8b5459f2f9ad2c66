#include "trainer/reference/reference_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "scheduler/plan_text.h"
#include "trainer/update/host_memory.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

std::string place_of(const HistoryEntry& entry) {
  return "window " + std::to_string(entry.window) + ", minibatches [" + std::to_string(entry.first) + ", " +
         std::to_string(entry.end) + ")";
}

void copy(const Buffer& target, const Buffer& source) { std::memcpy(target.data, source.data, source.size); }

void zero(const Buffer& buffer) { std::memset(buffer.data, 0, buffer.size); }

template <typename T>
std::span<T> part_of(const Buffer& buffer, const StageLayout::Entry& entry) {
  return buffer.as<T>().subspan(static_cast<std::size_t>(entry.offset),
                                static_cast<std::size_t>(entry.parameter.elements()));
}

}  // namespace

ReferenceRun::ReferenceRun(TrainOptions options, const DataSource& data, const TrainHooks& hooks)
    : options_(std::move(options)), data_(data), memory_(hooks.device != nullptr ? *hooks.device : host_memory()) {
  const ModelConfig& model = options_.model;
  for (int number = 0; number < model.blocks(); ++number) {
    Block& block = blocks_.emplace_back();
    block.layout = layout_of(model, number, number + 1);
    const auto elements = static_cast<std::size_t>(block.layout.elements);
    const auto zeros = [&](std::size_t bytes) { return allocate_zeroed(elements * bytes); };
    block.state = {zeros(model.weight_bytes()),
                   zeros(model.weight_bytes()),
                   zeros(sizeof(float)),
                   zeros(sizeof(float)),
                   {},
                   zeros(sum_bytes(options_.accumulation)),
                   zeros(model.weight_bytes())};
    block.next_provisional = zeros(model.weight_bytes());
    if (hooks.initialise_weights) hooks.initialise_weights(block.layout, block.state.weights);
    if (model.precision == Precision::kBf16) {
      block.state.master = zeros(sizeof(float));
      if (hooks.initialise_master) hooks.initialise_master(block.layout, block.state.master);
    }
    const Buffer sums =
        hooks.device != nullptr ? memory_.allocate_zeroed(block.state.gradients.size) : block.state.gradients;
    block.memory = {memory_.allocate_zeroed(elements * model.weight_bytes()), {sums, sums}};
    put(block.memory.weights, block.state.weights);
    block.compute = hooks.make_stage(
        {model, block.layout, block.memory, options_.accumulation, options_.schedule.window, &data_, &memory_});
  }
}

StageState ReferenceRun::state(int block) const { return blocks_[block].state; }

void ReferenceRun::resume(const ResumePoint& point) {
  EVERSTEP_CHECK(point.position == position_, "everything before a checkpoint is passed over");
  applied_ = point.applied;
  clip_scale_ = point.clip_scale;
  has_previous_ = point.continues_live && !point.continues_provisional;
  provisional_for_ = point.continues_provisional ? point.version.value : -1;
  window_loss_ = 0;
  for (const MinibatchLoss& loss : point.losses) window_loss_ += loss.loss;
  for (Block& block : blocks_) {
    block.loaded = -1;
    put(block.memory.gradients[0], block.state.gradients);
  }
}

// Where the blocks' code finds it: beside what the host has, or on the device, which has read it on return.
void ReferenceRun::put(const Buffer& to, const Buffer& from) {
  if (!to.on_device()) {
    if (to.data != from.data) copy(to, from);
    return;
  }
  const Buffer staged = memory_.allocate_pinned(from.size);
  copy(staged, from);
  memory_.copy(to, staged);
  wait_for(memory_.mark());
}

void ReferenceRun::fetch_gradients() {
  for (const Block& block : blocks_) {
    const Buffer& sums = block.memory.gradients[0];
    if (sums.on_device()) copy(block.state.gradients, memory_.fetch(sums));
  }
}

// ---- what history says ----

// Where the entry stands in history. Ranges of a window that a group kept when another one lost a worker stand between
// those of the generation that followed: both began the window at its start.
Status ReferenceRun::begin(const HistoryEntry& entry) {
  const std::int64_t window = entry.plan.window;
  if (Position{entry.window * window + entry.first} != position_ || entry.first >= entry.end || entry.end > window) {
    return invalid_argument(place_of(entry) + ": does not follow position " + std::to_string(position_.value));
  }
  std::erase_if(parts_, [&](const Part& part) { return part.window < entry.window - 1; });
  auto part = std::ranges::find_if(parts_, [&](const Part& one) {
    return one.window == entry.window && one.generation == entry.generation && one.plan == entry.plan;
  });
  if (part == parts_.end()) {
    const auto start = start_of(entry);
    if (!start) return start.error();
    part = parts_.insert(parts_.end(), {entry.window, entry.generation, entry.plan, *start, entry.end});
  }
  part->end = entry.end;
  start_ = part->start;
  window_size_ = entry.plan.window;
  uses_provisional_ = entry.provisional;
  return {};
}

// Of a generation's first range of a window. If that is at the window's start, the entry tells whether it began
// drained; if it is where the generation before stopped, it did. Otherwise somebody kept what it had run: an older
// generation that comes after a newer one, or one that the entry follows at what is no end of a super-round. Then it is
// about the window's start, too.
Result<WindowStart> ReferenceRun::start_of(const HistoryEntry& entry) const {
  int first = entry.first;
  if (first > 0 && !parts_.empty() && parts_.back().window == entry.window) {
    const Part& before = parts_.back();
    const bool ended_inside = (before.end - before.start.first) % super_round_size(request_of(before.plan)) != 0;
    if (entry.generation < before.generation || ended_inside) first = 0;
  }
  if (first > 0 || entry.flushed || !is_asynchronous(entry.plan.kind)) return WindowStart{true, first, 0};
  const auto full = std::find_if(parts_.rbegin(), parts_.rend(), [&](const Part& part) {
    return part.window == entry.window - 1 && part.plan == entry.plan;
  });
  if (full != parts_.rend()) return WindowStart{false, 0, full->start.first};
  return invalid_argument(place_of(entry) + ": its pipeline was full, but under another plan before");
}

Status ReferenceRun::pass_over(const HistoryEntry& entry) {
  EVERSTEP_TRY(begin(entry));
  position_.value += entry.end - entry.first;
  version_ = position_.value / entry.plan.window;
  return {};
}

Result<const WindowVersions*> ReferenceRun::versions_of(const scheduler::Plan& plan) {
  const std::pair key(scheduler::plan_text(plan), start_);
  auto known = known_versions_.find(key);
  if (known == known_versions_.end()) {
    auto versions = WindowVersions::of(plan, start_, options_.stash);
    if (!versions) return versions.error();
    known = known_versions_.emplace(key, std::move(*versions)).first;
  }
  return &known->second;
}

// ---- minibatches ----

Result<ReferenceStep> ReferenceRun::run(const HistoryEntry& entry) {
  EVERSTEP_TRY(begin(entry));
  const auto versions = versions_of(entry.plan);
  if (!versions) return versions.error();
  scheduler::ScheduleRequest request = request_of(entry.plan);
  request.first_minibatch = start_.first;
  const auto summed = provisional_minibatches(request);
  ReferenceStep step;
  for (int minibatch = entry.first; minibatch < entry.end; ++minibatch) {
    const bool is_left_out = std::ranges::find(entry.left_out, minibatch) != entry.left_out.end();
    const auto loss = is_left_out ? Result<double>(0.0) : train_minibatch(minibatch, **versions);
    if (!loss) return loss.error();
    step.losses.push_back(*loss);
    window_loss_ += *loss;
    ++position_.value;
    if (minibatch + 1 == summed) step_provisionally(*summed);
  }
  fetch_gradients();
  if (entry.end == entry.plan.window) step.update = update(entry.skipped);
  return step;
}

Result<double> ReferenceRun::train_minibatch(int minibatch, const WindowVersions& versions) {
  Noted<double> loss = 0;
  Buffer tensor;
  for (int number = 0; number < blocks(); ++number) {
    Block& block = blocks_[number];
    EVERSTEP_TRY(use(block, versions.at(minibatch, number).forward));
    auto output = block.compute->forward(position_, tensor);
    if (!output) return output.error();
    tensor = output->tensor;
    loss = output->loss;
  }
  for (int number = blocks() - 1; number >= 0; --number) {
    Block& block = blocks_[number];
    EVERSTEP_TRY(use(block, versions.at(minibatch, number).backward));
    auto gradient = block.compute->backward_input(position_, tensor, 0);
    if (!gradient) return gradient.error();
    EVERSTEP_TRY(block.compute->backward_weights(position_, 0));
    tensor = std::move(*gradient);
  }
  memory_.wait_gathered();
  return loss.value();
}

// Puts the weights of so many updates before the window's own where the block's code looks for them; of one before: the
// provisional ones that were made from them, if the window ran on those.
Status ReferenceRun::use(Block& block, int lag) {
  const bool provisional = lag == 1 && uses_provisional_;
  const std::int64_t key = 2 * (version_ - lag) + (provisional ? 1 : 0);
  if (block.loaded == key) return {};
  const bool is_there = lag == 0 || (lag == 1 && (provisional ? provisional_for_ == version_ : has_previous_));
  if (!is_there) {
    return invalid_argument("a pass of position " + std::to_string(position_.value) + " needs " +
                            (provisional ? "provisional weights" : "weights") + " of version " +
                            std::to_string(version_ - lag) + ", which nobody has kept");
  }
  const Buffer& before = provisional ? block.state.provisional : block.state.previous;
  put(block.memory.weights, lag == 0 ? block.state.weights : before);
  block.loaded = key;
  return {};
}

// As adamw_step() would, but with the gradient of the minibatches so far, and nothing is changed by it but what the
// next window begins on. Minibatches behind those may have begun before the update of the window before, and read what
// that window made.
void ReferenceRun::step_provisionally(int summed) {
  memory_.wait_gathered();
  fetch_gradients();
  const double rate =
      reference_learning_rate(options_.learning_rate, (version_ + 1) * window_size_ * options_.model.minibatch);
  const double scale = clip_scale_ * (static_cast<double>(window_size_) / static_cast<double>(summed));
  const std::vector<ReferenceParameter> all = parameters();
  auto parameter = all.begin();
  for (const Block& block : blocks_) {
    for (const StageLayout::Entry& entry : block.layout.entries) {
      const std::vector<float> values = adamw_trial(*parameter++, options_.adam, rate, scale, applied_ + 1);
      if (options_.model.precision == Precision::kFp32) {
        std::ranges::copy(values, part_of<float>(block.next_provisional, entry).begin());
      } else {
        std::ranges::transform(values, part_of<std::uint16_t>(block.next_provisional, entry).begin(), to_bf16);
      }
    }
  }
  has_next_provisional_ = true;
}

Result<double> ReferenceRun::evaluate(std::int64_t minibatches) {
  double sum = 0;
  for (std::int64_t i = 0; i < minibatches; ++i) {
    StageCompute::Output output;
    for (Block& block : blocks_) {
      EVERSTEP_TRY(use(block, 0));
      auto next = block.compute->evaluate(i, output.tensor);
      if (!next) return next.error();
      output = std::move(*next);
    }
    memory_.wait_gathered();
    sum += output.loss.value();
  }
  return sum / static_cast<double>(minibatches);
}

// ---- updates ----

ReferenceStep::Update ReferenceRun::update(bool skipped) {
  NotedFlags overflowed;
  for (Block& block : blocks_) {
    overflowed.add(block.compute->take_overflow(0));
    copy(block.state.previous, block.state.weights);
  }
  memory_.wait_gathered();
  const bool is_lost = overflowed.any();
  std::vector<ReferenceParameter> all = parameters();
  ReferenceStep::Update update;
  update.loss = window_loss_ / static_cast<double>(window_size_);
  update.gradient_norm = global_gradient_norm(all);
  update.finite = !is_lost && std::isfinite(update.loss) && std::isfinite(update.gradient_norm);
  update.skipped = skipped || !update.finite;
  if (!update.skipped) apply(all, update.gradient_norm);
  clip_scale_ = update.skipped ? 1 : reference_clip_scale(options_.adam, update.gradient_norm);
  for (Block& block : blocks_) {
    zero(block.state.gradients);
    memory_.zero(block.memory.gradients[0]);
    std::swap(block.state.provisional, block.next_provisional);
  }
  ++version_;
  provisional_for_ = std::exchange(has_next_provisional_, false) ? version_ : -1;
  has_previous_ = true;
  window_loss_ = 0;
  return update;
}

void ReferenceRun::apply(std::vector<ReferenceParameter>& parameters, double gradient_norm) {
  const double rate =
      reference_learning_rate(options_.learning_rate, (version_ + 1) * window_size_ * options_.model.minibatch);
  adamw_step(parameters, options_.adam, rate, gradient_norm, ++applied_);
  if (options_.model.precision == Precision::kFp32) return;
  for (const Block& block : blocks_) {
    const std::span<const float> master = block.state.master.as<float>();
    std::transform(master.begin(), master.end(), block.state.weights.as<std::uint16_t>().begin(), to_bf16);
  }
}

std::vector<ReferenceParameter> ReferenceRun::parameters() const {
  std::vector<ReferenceParameter> all;
  for (const Block& block : blocks_) {
    const Buffer& values = block.state.master.empty() ? block.state.weights : block.state.master;
    for (const StageLayout::Entry& entry : block.layout.entries) {
      all.push_back({entry.parameter, part_of<float>(values, entry), part_of<float>(block.state.first_moment, entry),
                     part_of<float>(block.state.second_moment, entry), gradient_of_entry(block, entry)});
    }
  }
  return all;
}

std::vector<float> ReferenceRun::gradient_of_entry(const Block& block, const StageLayout::Entry& entry) const {
  const Block* other = nullptr;
  for (const Block& each : blocks_) {
    if (entry.parameter.tied && each.layout.tied() != nullptr && &each != &block) other = &each;
  }
  const auto sums = [&]<typename Sum>(Sum) {
    const auto tied = other == nullptr ? std::span<Sum>() : part_of<Sum>(other->state.gradients, *other->layout.tied());
    return gradient_of(std::span<const Sum>(part_of<Sum>(block.state.gradients, entry)), std::span<const Sum>(tied));
  };
  return options_.accumulation == Accumulation::kFloat ? sums(float{}) : sums(std::int64_t{});
}

}  // namespace everstep::trainer
