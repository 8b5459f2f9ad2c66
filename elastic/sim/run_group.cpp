// A death in another group: this one finishes the super-rounds that it has begun and keeps its gradients.
#include <algorithm>
#include <utility>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/run.h"
#include "elastic/sim/world.h"
#include "scheduler/schedule.h"

namespace everstep::elastic::sim {
namespace {

constexpr Tick kGroupStopLimit = kSecond;

}  // namespace

std::vector<WorkerId> Run::group_members() const { return plan_of_group(plan(), group()).workers; }

bool Run::is_of_another_group(const WorkerId& id) const {
  const std::vector<WorkerId> members = group_members();
  return std::find(members.begin(), members.end(), id) == members.end();
}

// Whether somebody kept what it made.
bool Run::is_blank(std::int64_t position) const {
  const Origin& origin = start_.generation.origin;
  if (origin.kind != Origin::Kind::kSums || self_.process().world().mutation == Mutation::kKeptRunAgain) return false;
  const auto share = share_of_group(request_of(start_.generation.from->plan), origin.group, origin.rounds);
  return std::any_of(share.begin(), share.end(), [&](const scheduler::MinibatchRange& range) {
    return origin.position.value + range.first <= position && position < origin.position.value + range.end;
  });
}

void Run::lost_another_group(const WorkerId& id) {
  self_.tell(PeerDied{start_.generation.roster.attempt, id});
  if (lost_) return;
  lost_ = id;
  const Origin& origin = start_.generation.origin;
  const bool began_elsewhere = origin.kind == Origin::Kind::kSums || origin.position.value % kWindow != 0;
  const bool is_between_updates = !is_exchanging_ && !waits_for_copies_ && !ends_after_save_;
  auto word = std::make_shared<WordRecord>();
  word->may_keep = is_between_updates && !promised_ && !last_round_ &&
                   !(began_elsewhere && state_.version == window_of(origin.position));
  word->version = state_.version;
  word->started = started_;
  for (const WorkerId& member : group_members()) {
    if (member != self_.id()) send({.kind = Frame::Kind::kWord, .word = word}, member);
  }
  words_[self_.id()] = *word;
  later(kGroupStopLimit, [this] {
    break_off({ErrorCode::kUnavailable, "a peer was lost", ""}, std::pair(*lost_, true));
  });
  take_words();
}

// Until all have spoken nobody goes further than it has begun.
void Run::take_words() {
  if (!lost_ || group_stop_) return;
  const std::vector<WorkerId> members = group_members();
  std::int64_t stop = -1;
  for (const auto& [id, word] : words_) {
    if (!word.may_keep || word.version != state_.version) {
      return break_off({ErrorCode::kUnavailable, "a peer was lost", ""}, std::pair(*lost_, true));
    }
    stop = std::max(stop, word.started);
  }
  if (words_.size() < members.size()) return;
  group_stop_ = stop;
  if (round_ > started_) later(0, [this] { start_round(); });
}

// Whether the next super-round is none of its business.
bool Run::goes_its_own_way() {
  if (!lost_) return false;
  if (!group_stop_) return true;
  if (round_ <= *group_stop_) return false;
  end_in_group();
  return true;
}

void Run::end_in_group() {
  const std::int64_t super_round = super_round_size(request_of(plan()));
  TrainingState state = state_;
  state.position = {state_.version * kWindow};
  state.history.insert(state.history.end(), consumed_.begin(), consumed_.end());
  const std::int64_t run = state_.position.value - state.position.value;
  const auto rounds = static_cast<int>((run + super_round - 1) / super_round);
  TrainingEnded ended{start_.generation.roster.attempt, TrainingEnded::How::kBroken, held_copies(), *lost_, true, {}};
  ended.held.sums = {start_.generation.roster.attempt.generation, state.position, group(), rounds};
  sums_ = std::make_shared<const TrainingState>(std::move(state));
  finish(std::move(ended));
}

}  // namespace everstep::elastic::sim
