// What the brains want done, and what comes from peers.
#include <algorithm>
#include <utility>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {

void MemberLoop::carry_out(const Send& send) {
  transact(send.txn, [this, request = send.request](const Result<TxnReply>& reply) {
    step_agent(Replied{request, reply});
  });
}

void MemberLoop::carry_out(const Connect& connect) {
  process_.world().traps.reached(Point::kConnecting, process_);
  connector_.connect(connect.roster, view_);
}

void MemberLoop::carry_out(const Begin& begin) {
  auto connection = connector_.take(begin.generation.roster.attempt);
  if (!connection || run_) {
    return process_.world().violated("CONTRACT", process_.name() + " begins a generation that it cannot begin");
  }
  const auto& from = begin.generation.from;
  const bool is_holder = from && std::count(from->plan.workers.begin(), from->plan.workers.end(), id_) > 0;
  Run::Start start{
      begin.generation, view_.modified(process_.world().keys.generation()), *std::move(connection), {}, {}, head()};
  if (is_holder) start.end_state = begin.generation.origin.kind == Origin::Kind::kSums ? sums_ : end_state_;
  std::erase_if(copies_, [&](const auto& copies) { return !from || copies.first != from->attempt.generation; });
  if (!copies_.empty()) start.copies = copies_.begin()->second;
  run_ = std::make_shared<Run>(*this, std::move(start));
  run_->begin();
}

void MemberLoop::carry_out(const StopAtWindow& stop) {
  if (run_) run_->stop_at_window(stop.saves ? WindowStop::kSaveAndEnd : WindowStop::kHandOver);
}

void MemberLoop::carry_out(const PromiseRound& /*promise*/) {
  if (run_) tell(Promised{run_->promise()});
}

void MemberLoop::carry_out(const StopAtRound& stop) {
  if (run_) run_->stop_at_round(stop.round);
}

void MemberLoop::carry_out(const Abort& /*abort*/) {
  if (run_) run_->abort();
}

void MemberLoop::carry_out(const ReleaseOrigin& /*release*/) {
  end_state_.reset();
  sums_.reset();
  copies_.clear();  // those of the present generation are with the run
}

void MemberLoop::carry_out(const Rejoin& rejoin) {
  if (!end()) return;
  process_.rejoin(rejoin.after);
}

void MemberLoop::carry_out(const Exit& exit) {
  if (!end()) return;
  process_.exit(exit.error);
}

// Waits for the training thread: in vain if it hangs.
bool MemberLoop::end() {
  if (run_ && process_.ailments.hangs && process_.computing_since >= 0) {
    process_.stop(process_.world().now() + 3600 * kSecond);
    return false;
  }
  is_over_ = true;
  if (run_) run_->abort();
  run_.reset();
  if (lease_ != 0) process_.world().store.revoke(process_, lease_);
  return true;
}

void MemberLoop::on_training_ended(const TrainingEnded& ended) {
  process_.world().tell(process_.name(), [&] {
    const std::string how = ended.how == TrainingEnded::How::kBroken ? "breaks off" : "stops";
    return how + (ended.held.position ? " at position " + std::to_string(ended.held.position->value) : "") +
           (ended.error ? ": " + ended.error->message : "");
  });
  if (!run_) return;
  broken_.reset();
  if (ended.how == TrainingEnded::How::kBroken) broken_ = run_->roster();
  constexpr Tick kWatched = kSecond;
  watched_until_ = process_.now() + kWatched;
  if (run_->end_state()) end_state_ = run_->end_state();
  if (run_->sums()) sums_ = run_->sums();
  copies_[ended.attempt.generation] = run_->copies();
  run_.reset();
}

// ---- peers ----

void MemberLoop::take(const Hello& hello) {
  if (!is_over_ && hello.to == id_) connector_.take(hello);
}

void MemberLoop::take(const Frame& frame) {
  if (is_over_) return;
  if (frame.kind == Frame::Kind::kRenewed) {
    if (run_ && run_->is_of(frame)) peer_renewed_ = process_.now();
    return;
  }
  const bool accepts_all = process_.world().mutation == Mutation::kFrameOfAnyGeneration;
  if (run_ && (run_->is_of(frame) || accepts_all)) return run_->take(frame);
  connector_.take(frame);
}

void MemberLoop::peer_lost(const WorkerId& id, bool is_dead) {
  if (is_over_) return;
  connector_.peer_lost(id, is_dead);
  if (run_) return run_->peer_lost(id, is_dead);
  if (!is_dead || !broken_ || process_.now() >= watched_until_) return;
  const std::vector<WorkerId> connected = broken_->connected();
  if (std::find(connected.begin(), connected.end(), id) != connected.end()) tell(PeerDied{broken_->attempt, id});
}

}  // namespace everstep::elastic::sim
