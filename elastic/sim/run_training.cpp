// The rounds of a window, the exchange at its end, and the update.
#include <algorithm>
#include <utility>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/run.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {

void Run::start_round() {
  Process& process = self_.process();
  if (goes_its_own_way()) return;
  if (promised_ && !last_round_ && round_ > *promised_ + 1) {
    waits_for_stop_ = true;
    return;
  }
  if (last_round_ && round_ > *last_round_) return end_in_order(TrainingEnded::How::kStopped);
  started_ = std::max(started_, round_);
  process.computing_since = process.world().now();
  process.world().traps.reached(Point::kRound, process);
  if (process.ailments.hangs) return;
  const Tick base = process.world().job.round_time;
  later(base / 2 + process.world().dice().below(base), [this] { finish_round(); });
}

void Run::finish_round() {
  Process& process = self_.process();
  if (process.ailments.hangs) return;
  process.computing_since = -1;
  const std::int64_t begin = state_.position.value;
  const std::int64_t window_end = (window_of(state_.position) + 1) * kWindow;
  const std::int64_t end = std::min(window_end, begin + super_round_size(request_of(plan())));
  compute(begin, end);
  state_.position = {end};
  ++round_;
  if (end == window_end && !lost_) {
    exchange();
  } else {
    start_round();
  }
}

// Group g takes [gR, (g+1)R) of the super-round, where R is the size of a round; the last stage knows the losses.
void Run::compute(std::int64_t from, std::int64_t to) {
  Process& process = self_.process();
  const int size = round_size(request_of(plan()));
  const std::int64_t first = std::min(to, from + std::int64_t{group()} * size);
  const std::int64_t end = std::min(to, first + size);
  for (std::int64_t position = first; position < end; ++position) {
    if (is_blank(position)) continue;
    Consumed minibatch{position, position};
    if (process.world().mutation == Mutation::kCursorPerWorker) {
      minibatch.sample = position + cursor_error_;
      process.data_cursor = minibatch.sample + 1;
    }
    if (stage() == plan().depth - 1) consumed_.push_back(minibatch);
    const auto& left_out = start_.generation.left_out;
    if (std::find(left_out.begin(), left_out.end(), Position{position}) != left_out.end()) continue;
    for (const auto& [block, state] : state_.blocks) {
      state_.gradients[block].push_back({position, gradient_of(process.world().seed, block, minibatch, state)});
    }
    if (!spoils({position})) continue;
    state_.is_spoilt = true;
    if (!source_) source_ = {position};
  }
}

// Where it first comes in.
bool Run::spoils(Position position) {
  World& world = self_.process().world();
  const auto bad = bad_gradient(world.seed);
  if (stage() != 0 || !bad || bad->position != position) return false;
  if (!bad->always && std::exchange(world.has_spoilt, true)) return false;
  world.faults.add(Fault::kBadGradient);
  return true;
}

// As trainer/update/anomaly.h does.
std::optional<AnomalyReport> Run::anomaly_of(const std::vector<ExchangeRecord>& records) const {
  AnomalyReport report{.window = state_.version, .repeats = true};
  bool is_spoilt = false;
  for (std::size_t at = 0; at < records.size(); ++at) {
    is_spoilt = is_spoilt || records[at].is_spoilt;
    const auto& source = records[at].source;
    if (!source || (report.minibatch && *report.minibatch <= *source)) continue;
    report.minibatch = source;
    report.suspect = plan().workers[at];
  }
  return is_spoilt ? std::optional(report) : std::nullopt;
}

// At a window's beginning. Of the groups, whose owners have the same, one sends it to the guards.
void Run::share_copy() {
  copies_->keep(state_);
  if (group() != 0) return;
  auto record = std::make_shared<CopyRecord>();
  record->stage = stage();
  record->state = *copies_->merged(state_.version);
  std::erase_if(record->state.blocks, [&](const auto& block) { return !state_.blocks.contains(block.first); });
  // It is much to send, and everything else goes first.
  World& world = self_.process().world();
  for (const WorkerId& guard : plan().guards[stage()]) {
    const Tick delay = world.dice().one_in(4) ? world.dice().below(Tick{2} * kWindow * world.job.round_time) : 0;
    later(delay, [this, guard, record] { send({.kind = Frame::Kind::kCopy, .copy = record}, guard); });
  }
}

// Whoever joins says that it has all copies of the version that the window ran on: once all have joined, the version
// before may be forgotten.
void Run::exchange() {
  Process& process = self_.process();
  if (!copies_->is_guarding(state_.version) && process.world().mutation != Mutation::kGuardJoinsEarly) {
    waits_for_copies_ = true;
    return;
  }
  process.world().traps.reached(Point::kExchange, process);
  if (has_ended_) return;
  auto record = std::make_shared<ExchangeRecord>();
  record->window = state_.version;
  record->gradients = state_.gradients;
  record->consumed = consumed_;
  record->is_spoilt = state_.is_spoilt;
  record->source = source_;
  record->stop = stop_;
  record->writer_is_idle = writer_.is_idle();
  is_exchanging_ = true;
  exchanges_[state_.version].insert_or_assign(self_.id(), *record);
  for (const WorkerId& to : plan().workers) {
    if (to != self_.id()) send({.kind = Frame::Kind::kExchange, .exchange = record}, to);
  }
  take_exchanges();
}

void Run::take_exchanges() {
  if (!is_exchanging_) return;
  auto& present = exchanges_[state_.version];
  std::vector<ExchangeRecord> records;
  for (const WorkerId& id : plan().workers) {
    const auto found = present.find(id);
    if (found == present.end()) return;
    records.push_back(found->second);
  }
  is_exchanging_ = false;
  if (self_.process().world().mutation == Mutation::kSumByArrival) {
    const auto arrived = [&](const WorkerId& id) { return std::find(arrivals_.begin(), arrivals_.end(), id); };
    std::vector<WorkerId> order = plan().workers;
    std::stable_sort(order.begin(), order.end(),
                     [&](const WorkerId& a, const WorkerId& b) { return arrived(a) < arrived(b); });
    for (std::size_t at = 0; at < order.size(); ++at) records[at] = present.at(order[at]);
  }
  exchanges_.erase(state_.version);
  arrivals_.clear();
  update(records);
}

void Run::update(const std::vector<ExchangeRecord>& records) {
  World& world = self_.process().world();
  const std::int64_t window = state_.version;
  const auto anomaly = anomaly_of(records);
  const auto& trial = start_.generation.trial;
  const bool is_last_try = trial && trial->skips && trial->report.window == window;
  if (anomaly && !is_last_try) {
    return break_off({ErrorCode::kDataLoss, "a gradient is no number", ""}, std::nullopt, anomaly);
  }
  std::vector<Consumed> consumed;
  for (const ExchangeRecord& record : records) {
    consumed.insert(consumed.end(), record.consumed.begin(), record.consumed.end());
  }
  std::sort(consumed.begin(), consumed.end());
  state_.history.insert(state_.history.end(), consumed.begin(), consumed.end());
  std::sort(state_.history.begin(), state_.history.end());  // what a group kept is in it already
  consumed_.clear();
  if (anomaly || is_skipped(world.seed, window)) {
    state_.skipped.insert(window);
  } else {
    for (auto& [block, state] : state_.blocks) {
      std::vector<Gradient> sum;
      for (const ExchangeRecord& record : records) {
        const auto found = record.gradients.find(block);
        if (found != record.gradients.end()) sum.insert(sum.end(), found->second.begin(), found->second.end());
      }
      if (world.mutation != Mutation::kSumByArrival) std::sort(sum.begin(), sum.end());
      state = updated(state, sum, window);
    }
  }
  state_.gradients.clear();
  state_.is_spoilt = false;
  source_.reset();
  ++state_.version;
  share_copy();
  after_update(records);
}

void Run::after_update(const std::vector<ExchangeRecord>& records) {
  Process& process = self_.process();
  const JobSettings& job = process.world().job;
  window_time_ = process.now() - std::exchange(window_began_, process.now());
  if (!std::exchange(has_updated_, true)) self_.tell(FirstUpdate{start_.generation.roster.attempt});
  WindowStop stop = WindowStop::kNo;
  bool all_idle = true;
  for (const ExchangeRecord& record : records) {
    stop = std::max(stop, record.stop);
    all_idle = all_idle && record.writer_is_idle;
  }
  const bool is_last = job.steps > 0 && state_.version >= job.steps;
  if (is_last || stop == WindowStop::kSaveAndEnd) return save_and_end();
  if (stop == WindowStop::kHandOver) return end_in_order(TrainingEnded::How::kStopped);
  if (all_idle && state_.version % job.save_every == 0) save();
  start_round();
}

void Run::save() {
  const Attempt& attempt = start_.generation.roster.attempt;
  Cut cut;
  cut.name = {attempt.generation, state_.position, attempt.nonce + static_cast<std::uint64_t>(state_.position.value)};
  cut.version = state_.version;
  cut.skipped = state_.skipped;
  cut.history = state_.history;
  if (group() == stage() % plan().width) cut.blocks = state_.blocks;  // each block is written by one group
  writer_.save(std::move(cut));
}

// The one before may still be under way; what could not be saved is tried again.
void Run::save_and_end() {
  ends_after_save_ = true;
  if (!writer_.is_idle()) return;
  save();
}

}  // namespace everstep::elastic::sim
