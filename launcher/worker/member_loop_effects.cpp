// What the brains want done, and what becomes of a generation's training.
#include <algorithm>
#include <utility>

#include "base/log_line.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/worker/member_loop.h"
#include "launcher/worker/skipped_update.h"
#include "launcher/worker/worker_process.h"

namespace everstep::launcher {

using elastic::AgentEvent;
using elastic::GenerationRecord;

namespace {

// Of the generation before, as far as it had come.
std::int64_t minibatches_to_redo(const GenerationRecord& next, Position reached) {
  const elastic::Origin& origin = next.origin;
  if (origin.kind == elastic::Origin::Kind::kMemory) return 0;
  std::int64_t redone = std::max<std::int64_t>(0, reached.value - origin.position.value);
  if (origin.kind != elastic::Origin::Kind::kSums) return redone;
  const auto inside = static_cast<int>(std::min<std::int64_t>(redone, next.from->plan.window));
  for (const scheduler::MinibatchRange& range :
       share_of_group(request_of(next.from->plan), origin.group, origin.rounds)) {
    redone -= std::max(0, std::min(range.end, inside) - range.first);
  }
  return redone;
}

}  // namespace

void MemberLoop::carry_out(const elastic::Connect& connect) {
  for (const WorkerId& id : connect.roster.connected()) names_[id] = name_of(id);
  connector_.connect(connect.roster, view_.view());
}

void MemberLoop::carry_out(const elastic::Begin& begin) {
  const GenerationRecord& generation = begin.generation;
  auto connection = connector_.take(generation.roster.attempt);
  EVERSTEP_CHECK(connection.has_value(), "a generation begins when its connections are up");
  EVERSTEP_CHECK(run_ == nullptr, "a generation begins when the one before has ended");
  parts_.progress.begin_generation();
  GenerationRun::Start start{generation,
                             view_.view().modified(parts_.keys.generation()),
                             std::move(connection->peers),
                             std::move(connection->links),
                             {},
                             {},
                             {}};
  const bool is_holder = generation.origin.kind == elastic::Origin::Kind::kMemory && generation.from &&
                         std::ranges::find(generation.from->plan.workers, self_) != generation.from->plan.workers.end();
  if (is_holder) start.end_state = end_state_;
  start.head = head();
  const Position committed = start.head ? start.head->checkpoint.position : Position{0};
  if (auto sums = sums_.at(generation, committed)) start.end_state = std::move(sums);
  const auto& from = generation.from;
  std::erase_if(copies_, [&](const auto& copies) { return !from || copies.first != from->attempt.generation; });
  // Found by chaos: one that was asleep when the leader asked who has copies has some, but nobody counts on them.
  const bool is_counted_on =
      std::ranges::any_of(generation.holders, [this](const elastic::CopyHolder& one) { return one.id == self_; });
  if (generation.origin.kind == elastic::Origin::Kind::kCopies && is_counted_on && !copies_.empty()) {
    start.copies = copies_.begin()->second.at(generation.origin.position, committed);
  }
  redone_ = minibatches_to_redo(generation, {parts_.watch.reached()});
  parts_.watch.reset();
  run_ = std::make_unique<GenerationRun>(ground_, std::move(start), run_callbacks(generation));
}

// The first worker tells of it for all.
std::optional<elastic::AnomalyTrial> MemberLoop::tried_here(const GenerationRecord& generation) const {
  return generation.roster.plan.workers.front() == self_ ? generation.trial : std::nullopt;
}

RunCallbacks MemberLoop::run_callbacks(const GenerationRecord& generation) {
  const elastic::Attempt& attempt = generation.roster.attempt;
  RunCallbacks callbacks;
  callbacks.on_moved = [this] { clock_.moved(boot_now()); };
  callbacks.on_step = [this, attempt, trial = tried_here(generation),
                       is_first = true](const trainer::StepReport& report) mutable {
    parts_.progress.on_step(report);
    parts_.curve.note(attempt.generation, report);
    // In this worker's own log; a supervisor hears of it by the step itself.
    if (report.skipped) log_event(skipped_event(report, parts_.job.request.options.accumulation));
    if (trial && report.step == trial->report.window + 1) {
      parts_.log(LogLine("window_tried_again")
                     .add("window", trial->report.window)
                     .add("outcome", report.skipped ? "skipped" : "applied")
                     .text());
    }
    parts_.tell(ElasticStep{attempt.generation, report});
    if (!std::exchange(is_first, false)) return;
    clock_.updated(boot_now());
    mailbox_.put(AgentEvent(elastic::FirstUpdate{attempt}));
  };
  callbacks.on_validation = [this](std::int64_t step, double loss) {
    parts_.progress.on_validation(loss);
    parts_.curve.note_validation(step, loss);
    parts_.tell(Validation{step, loss});
  };
  callbacks.on_save_skipped = [this](Position position) {
    parts_.metrics.change([](WorkerMetrics& metrics) { ++metrics.saves_skipped; });
    parts_.tell(trainer::SaveSkipped{position});
  };
  callbacks.on_commit_waiting = [this](const Error& error) {
    parts_.log(LogLine("commit_waits").add("reason", error.line()).text());
  };
  callbacks.on_end = [this](elastic::TrainingEnded ended) { mailbox_.put(AgentEvent(std::move(ended))); };
  return callbacks;
}

void MemberLoop::carry_out(const elastic::StopAtWindow& stop) {
  if (run_)
    run_->stops().stop_at_window_end(stop.saves ? trainer::WindowStop::kSaveAndEnd : trainer::WindowStop::kHandOver);
}

void MemberLoop::carry_out(const elastic::PromiseRound&) {
  if (run_) mailbox_.put(AgentEvent(elastic::Promised{run_->stops().promise()}));
}

void MemberLoop::carry_out(const elastic::StopAtRound& stop) {
  if (run_) run_->stops().stop_after(stop.round);
}

void MemberLoop::carry_out(const elastic::Abort& abort) {
  if (run_) run_->abort(abort.reason);
}

// For a while there were the origin, what came from others, and the copy that is trained on.
void MemberLoop::carry_out(const elastic::ReleaseOrigin& /*release*/) {
  end_state_.reset();
  copies_.clear();
  sums_ = {};
  return_free_memory();
}

void MemberLoop::carry_out(const elastic::Rejoin& rejoin) {
  parts_.log(LogLine("rejoining").add("reason", rejoin.reason).text());
  end_ = End{rejoin.after, std::nullopt};
}

void MemberLoop::carry_out(const elastic::Exit& exit) {
  end_ = End{std::nullopt, exit.error};
  if (!exit.error && !saved_) end_->error = saved_.error();
}

// ---- what happened ----

void MemberLoop::on_training_ended(const elastic::TrainingEnded& ended) {
  const bool is_broken = ended.how == elastic::TrainingEnded::How::kBroken;
  clock_.ended(boot_now(), is_broken ? parts_.watch.last_end() : 0);
  LogLine event("training_ended");
  event.add("generation", ended.attempt.generation.value).add("how", is_broken ? "broken" : "in order");
  if (ended.held.position) event.add("position", ended.held.position->value);
  if (ended.held.sums) event.add("kept_rounds", ended.held.sums->rounds);
  // The transport numbers workers; people know them by name.
  if (ended.lost) {
    event.add("lost", name_of(*ended.lost)).add("reason", ended.lost_is_dead ? "it died" : "it does not answer");
  } else if (ended.error) {
    event.add("reason", ended.error->line());
  }
  parts_.log(event.text());
  if (!run_) return;
  old_lines_.reset();
  if (is_broken) {
    old_lines_ = run_->take_lines();
    old_lines_->outlive_transport(boot_now());
  }
  if (run_->end_state()) end_state_ = run_->end_state();
  copies_[ended.attempt.generation] = run_->copies();
  if (run_->sums().state) sums_ = run_->sums();
  saved_ = run_->saved();
  // Its checkpoint writer may be waiting for the disk, and others for word of what is held here.
  retired_.start([run = std::shared_ptr<GenerationRun>(std::move(run_))]() mutable { run.reset(); });
}

}  // namespace everstep::launcher
