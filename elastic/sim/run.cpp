#include "elastic/sim/run.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

int rank_in(const RosterRecord& roster, const WorkerId& id) {
  const std::vector<WorkerId> connected = roster.connected();
  return static_cast<int>(std::find(connected.begin(), connected.end(), id) - connected.begin());
}

Error broken(const std::string& why) { return {ErrorCode::kUnavailable, why, ""}; }

}  // namespace

Run::Run(MemberLoop& self, Start start)
    : self_(self),
      start_(std::move(start)),
      rank_(rank_in(start_.generation.roster, self.id())),
      writer_(self.process(), self.id(), start_.generation.roster.attempt, start_.opened),
      copies_(
          std::make_shared<Copies>(plan(), self.id(), self.process().world().mutation == Mutation::kOneVersionKept)) {}

void Run::later(Tick delay, std::function<void()> action) {
  self_.later(delay, [weak = weak_from_this(), action = std::move(action)] {
    const auto run = weak.lock();
    if (run && !run->has_ended_) action();
  });
}

void Run::send(Frame frame, const WorkerId& to) {
  frame.attempt = start_.generation.roster.attempt;
  frame.from = self_.id();
  frame.to = to;
  frame.token = start_.connection.peers.at(to);
  self_.process().world().network.send(frame);
}

void Run::begin() {
  if (start_.connection.lost) {
    return break_off(broken("a peer was lost before the generation began"), start_.connection.lost);
  }
  switch (start_.generation.origin.kind) {
    case Origin::Kind::kMemory:
    case Origin::Kind::kCopies:
    case Origin::Kind::kSums:
      send_own_part();
      break;
    case Origin::Kind::kCheckpoint:
      later(self_.process().world().dice().between(20, 200) * kMillisecond, [this] { restore(); });
      break;
    case Origin::Kind::kBeginning:
      start_anew();
      break;
  }
  for (const Frame& frame : std::exchange(start_.connection.inbox, {})) take(frame);
}

bool Run::is_of(const Frame& frame) const {
  return frame.attempt == start_.generation.roster.attempt && frame.token == start_.connection.token;
}

void Run::take(const Frame& frame) {
  if (has_ended_) return;
  World& world = self_.process().world();
  if (frame.is_corrupted) return break_off(broken("a frame was damaged on its way"), std::nullopt);
  if (frame.attempt != start_.generation.roster.attempt) {
    world.violated("FENCE", self_.process().name() + " accepts a frame of attempt " + to_string(frame.attempt) +
                                " in " + to_string(start_.generation.roster.attempt));
  }
  if (frame.kind == Frame::Kind::kMove) {
    moves_.try_emplace(frame.from, *frame.move);
    return take_moves();
  }
  if (frame.kind == Frame::Kind::kCopy) {
    copies_->take(*frame.copy);
    if (std::exchange(waits_for_copies_, false)) exchange();
    return;
  }
  if (frame.kind == Frame::Kind::kWord) {
    words_.try_emplace(frame.from, *frame.word);
    return take_words();
  }
  auto& records = exchanges_[frame.exchange->window];
  if (records.emplace(frame.from, *frame.exchange).second) arrivals_.push_back(frame.from);
  take_exchanges();
}

// ---- the origin ----

// What this worker has of the origin.
std::optional<TrainingState> Run::own_part() const {
  const Origin& origin = start_.generation.origin;
  if (origin.kind == Origin::Kind::kCopies) {
    return start_.copies ? start_.copies->merged(window_of(origin.position)) : std::nullopt;
  }
  if (!start_.end_state || start_.end_state->position != origin.position) return std::nullopt;
  return *start_.end_state;
}

// Who is asked for the origin.
std::vector<WorkerId> Run::holders() const {
  const Origin& origin = start_.generation.origin;
  if (origin.kind == Origin::Kind::kMemory) return start_.generation.from->plan.workers;
  if (origin.kind == Origin::Kind::kSums) return plan_of_group(start_.generation.from->plan, origin.group).workers;
  std::vector<WorkerId> ids;
  for (const CopyHolder& holder : start_.generation.holders) ids.push_back(holder.id);
  return ids;
}

void Run::send_own_part() {
  auto record = std::make_shared<MoveRecord>();
  if (auto part = own_part()) {
    record->has_state = true;
    record->state = *std::move(part);
    if (self_.process().world().mutation == Mutation::kGradientsDropped) record->state.gradients.clear();
  }
  const std::vector<WorkerId> asked = holders();
  if (std::find(asked.begin(), asked.end(), self_.id()) != asked.end()) {
    for (const WorkerId& to : plan().workers) {
      if (to == self_.id()) {
        moves_.emplace(to, *record);
      } else {
        send({.kind = Frame::Kind::kMove, .move = record}, to);
      }
    }
  }
  // The last bytes are on their way.
  if (is_donor()) {
    return later(10 * kMillisecond, [this] { end_in_order(TrainingEnded::How::kHandedOver); });
  }
  take_moves();
}

// Of every block the first group's owner that is connected gives its state; copies are all alike, and of a group that
// kept its sums each has blocks of its own.
bool Run::takes_state_from(const WorkerId& holder, int block) const {
  if (start_.generation.origin.kind != Origin::Kind::kMemory) return true;
  const scheduler::Plan& from = start_.generation.from->plan;
  const std::vector<WorkerId> connected = start_.generation.roster.connected();
  for (int group = 0; group < from.width; ++group) {
    for (int stage = 0; stage < from.depth; ++stage) {
      const WorkerId& owner = from.workers[group * from.depth + stage];
      const bool has_block = from.cuts[stage] <= block && block < from.cuts[stage + 1];
      if (!has_block || std::find(connected.begin(), connected.end(), owner) == connected.end()) continue;
      return owner == holder;
    }
  }
  return false;
}

void Run::take_moves() {
  if (is_training_ || !start_.generation.from || is_donor()) return;
  const std::vector<WorkerId> connected = start_.generation.roster.connected();
  for (const WorkerId& holder : holders()) {
    const bool is_connected = std::find(connected.begin(), connected.end(), holder) != connected.end();
    if (is_connected && !moves_.contains(holder)) return;
  }
  TrainingState merged;
  merged.position = start_.generation.origin.position;
  for (const auto& [holder, move] : moves_) {
    if (!move.has_state) continue;
    for (const auto& [block, state] : move.state.blocks) {
      if (takes_state_from(holder, block)) merged.blocks[block] = state;
    }
    for (const auto& [block, gradients] : move.state.gradients) {
      auto& all = merged.gradients[block];
      all.insert(all.end(), gradients.begin(), gradients.end());
    }
    merged.version = move.state.version;
    merged.is_spoilt = merged.is_spoilt || move.state.is_spoilt;
    merged.skipped = move.state.skipped;
    merged.history.insert(merged.history.end(), move.state.history.begin(), move.state.history.end());
  }
  std::sort(merged.history.begin(), merged.history.end());
  merged.history.erase(std::unique(merged.history.begin(), merged.history.end()), merged.history.end());
  if (merged.blocks.size() != kBlocks) return break_off(broken("nobody has the state of some block"), std::nullopt);
  own_blocks_of(std::move(merged));
}

void Run::restore() {
  World& world = self_.process().world();
  world.traps.reached(Point::kRestoring, self_.process());
  if (!start_.head || start_.head->manifest != start_.generation.origin.manifest) {
    return break_off(broken("HEAD is not the checkpoint that the generation starts from"), std::nullopt);
  }
  auto loaded = load_checkpoint(world.disk, *start_.head, false);
  if (!loaded) {
    world.call_operator(loaded.error().message);
    return break_off(loaded.error(), std::nullopt);
  }
  TrainingState state = std::move(loaded->state);
  if (world.mutation == Mutation::kMomentsNotSaved) {
    for (auto& [block, one] : state.blocks) one.moments = 0;
  }
  if (world.mutation == Mutation::kSkipsNotSaved) state.skipped.clear();
  if (world.mutation == Mutation::kVersionOffByOne) ++state.version;
  own_blocks_of(std::move(state));
}

void Run::start_anew() {
  TrainingState state;
  for (int block = 0; block < kBlocks; ++block) {
    state.blocks[block] = initial_block(self_.process().world().seed, block);
  }
  own_blocks_of(std::move(state));
}

// Each worker keeps its stage; gradients of an unfinished window go to the first group alone.
void Run::own_blocks_of(TrainingState state) {
  const int first = plan().cuts[stage()];
  const int end = plan().cuts[stage() + 1];
  std::erase_if(state.blocks, [&](const auto& block) { return block.first < first || block.first >= end; });
  std::erase_if(state.gradients,
                [&](const auto& block) { return group() != 0 || block.first < first || block.first >= end; });
  state_ = std::move(state);
  origin_is_in_place();
}

void Run::origin_is_in_place() {
  is_training_ = true;
  if (self_.process().data_cursor > 0) cursor_error_ = self_.process().data_cursor - state_.position.value;
  window_began_ = self_.process().now();
  self_.process().world().tell(self_.process().name(), [&] {
    return "trains in generation " + std::to_string(start_.generation.roster.attempt.generation.value) +
           " from position " + std::to_string(state_.position.value) + ", depth " + std::to_string(plan().depth) +
           ", width " + std::to_string(plan().width);
  });
  share_copy();
  start_round();
}

std::string Run::state() const {
  if (!is_training_) return "waits for its origin";
  std::string text = is_exchanging_ ? "exchanges at" : waits_for_stop_ ? "waits for the last round at" : "computes at";
  return text + " position " + std::to_string(state_.position.value) +
         (ends_after_save_ ? ", waits for a verdict" : "");
}

// ---- ends ----

void Run::stop_at_window(WindowStop how) { stop_ = std::max(stop_, how); }

std::int64_t Run::promise() {
  if (!promised_) promised_ = started_;
  return *promised_;
}

// A window of which a group kept sums is run to its end.
void Run::stop_at_round(std::int64_t round) {
  const std::int64_t super_round = super_round_size(request_of(plan()));
  const bool has_sums = start_.generation.origin.kind == Origin::Kind::kSums;
  if (has_sums) round = std::max(round, (kWindow + super_round - 1) / super_round - 1);
  if (!last_round_) last_round_ = round;
  if (std::exchange(waits_for_stop_, false)) later(0, [this] { start_round(); });
}

void Run::abort() {
  if (has_ended_) return;
  is_aborted_ = true;
  break_off({ErrorCode::kCancelled, "broken off", ""}, std::nullopt);
}

void Run::peer_lost(const WorkerId& id, bool is_dead) {
  const std::vector<WorkerId> connected = start_.generation.roster.connected();
  if (has_ended_ || std::find(connected.begin(), connected.end(), id) == connected.end()) return;
  // A donor that has given all it had is no loss.
  const bool is_worker = std::find(plan().workers.begin(), plan().workers.end(), id) != plan().workers.end();
  if (is_training_ && !is_worker) return;
  if (is_training_ && is_dead && is_of_another_group(id)) return lost_another_group(id);
  break_off(broken("a peer was lost"), std::pair(id, is_dead));
}

void Run::tell_renewed() {
  for (const WorkerId& id : start_.generation.roster.connected()) {
    if (id != self_.id()) send({.kind = Frame::Kind::kRenewed}, id);
  }
}

void Run::take_verdict(const CheckpointName& name, bool is_committed) {
  if (has_ended_ || !writer_.take_verdict(name)) return;
  if (is_committed) {
    std::erase_if(state_.history, [&](const Consumed& one) { return one.position < name.position.value; });
  }
  if (!ends_after_save_) return;
  const bool is_last = self_.process().world().job.steps > 0 && state_.version >= self_.process().world().job.steps;
  if (name.position != state_.position) return save_and_end();  // it was the one before
  end_in_order(is_last ? TrainingEnded::How::kFinished : TrainingEnded::How::kStopped);
}

void Run::end_in_order(TrainingEnded::How how) {
  TrainingEnded ended{start_.generation.roster.attempt, how, {}, {}, false, {}};
  if (how != TrainingEnded::How::kHandedOver) {
    ended.held = held_copies();
    std::vector<Consumed>& history = state_.history;
    history.insert(history.end(), consumed_.begin(), consumed_.end());
    end_state_ = std::make_shared<const TrainingState>(state_);
    ended.held.position = state_.position;
    ended.held.of = start_.generation.roster.attempt.generation;
    ended.held.finished = how == TrainingEnded::How::kFinished;
  }
  finish(std::move(ended));
}

HeldRecord Run::held_copies() const {
  HeldRecord held;
  held.copies = copies_->held(start_.generation.roster.attempt.generation);
  return held;
}

void Run::break_off(const Error& error, std::optional<std::pair<WorkerId, bool>> lost,
                    std::optional<AnomalyReport> anomaly) {
  TrainingEnded ended{start_.generation.roster.attempt, TrainingEnded::How::kBroken, held_copies(), {}, false, error};
  ended.held.anomaly = anomaly;
  if (lost && !is_aborted_) {
    ended.lost = lost->first;
    ended.lost_is_dead = lost->second;
  }
  finish(std::move(ended));
}

void Run::finish(TrainingEnded ended) {
  has_ended_ = true;
  writer_.break_off();
  Process& process = self_.process();
  if (process.ailments.hangs && process.computing_since >= 0) return;  // its thread never comes back
  process.computing_since = -1;
  self_.later(self_.process().world().dice().below(20 * kMillisecond),
              [&self = self_, ended = std::move(ended)] { self.tell(ended); });
}

}  // namespace everstep::elastic::sim
