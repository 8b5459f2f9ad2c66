// What the brains want done, and what becomes of a generation's training.
#include <algorithm>
#include <utility>

#include "base/log_line.h"
#include "launcher/elastic/boot_clock.h"
#include "launcher/elastic/incarnation.h"
#include "launcher/train/worker_process.h"

namespace everstep::launcher {

using elastic::AgentEvent;
using elastic::GenerationRecord;

void Incarnation::carry_out(const elastic::Connect& connect) { connector_.connect(connect.group, view_.view()); }

void Incarnation::carry_out(const elastic::Begin& begin) {
  const GenerationRecord& generation = begin.generation;
  auto connection = connector_.take(generation.group.attempt);
  EVERSTEP_CHECK(connection.has_value(), "a generation begins when its connections are up");
  EVERSTEP_CHECK(run_ == nullptr, "a generation begins when the one before has ended");
  parts_.progress.begin_generation();
  GenerationRun::Start start{
      generation, view_.view().modified(parts_.keys.generation()), *std::move(connection), {}, {}, {}};
  const bool is_holder = generation.base.kind == elastic::Base::Kind::kMemory && generation.from &&
                         std::ranges::find(generation.from->plan.workers, self_) != generation.from->plan.workers.end();
  if (is_holder) start.held = held_;
  start.head = head();
  const auto& from = generation.from;
  std::erase_if(copies_, [&](const auto& kept) { return !from || kept.first != from->attempt.generation; });
  if (generation.base.kind == elastic::Base::Kind::kCopies && !copies_.empty()) {
    const Position committed = start.head ? start.head->checkpoint.position : Position{0};
    start.copies = copies_.begin()->second.at(generation.base.position, committed);
  }
  redone_ = generation.base.kind == elastic::Base::Kind::kMemory
                ? 0
                : std::max<std::int64_t>(0, parts_.watch.reached() - generation.base.position.value);
  parts_.watch.reset();
  run_ = std::make_unique<GenerationRun>(ground_, std::move(start), run_callbacks(generation.group.attempt));
}

RunCallbacks Incarnation::run_callbacks(const elastic::Attempt& attempt) {
  RunCallbacks callbacks;
  callbacks.on_moved = [this] { clock_.moved(boot_now()); };
  callbacks.on_step = [this, attempt, is_first = true](const trainer::StepReport& report) mutable {
    parts_.progress.on_step(report);
    parts_.tell(ElasticStep{attempt.generation, report});
    if (!std::exchange(is_first, false)) return;
    clock_.updated(boot_now());
    mailbox_.put(AgentEvent(elastic::FirstUpdate{attempt}));
  };
  callbacks.on_validation = [this](std::int64_t step, double loss) { parts_.tell(Validation{step, loss}); };
  callbacks.on_save_skipped = [this](Position position) {
    parts_.metrics.change([](WorkerMetrics& metrics) { ++metrics.saves_skipped; });
    parts_.tell(SaveSkipped{position});
  };
  callbacks.on_end = [this](elastic::TrainingEnded ended) { mailbox_.put(AgentEvent(std::move(ended))); };
  return callbacks;
}

void Incarnation::carry_out(const elastic::StopAtWindow& stop) {
  if (run_)
    run_->stops().stop_at_window_end(stop.saves ? trainer::WindowStop::kSaveAndEnd : trainer::WindowStop::kHandOver);
}

void Incarnation::carry_out(const elastic::PromiseRound&) {
  if (run_) mailbox_.put(AgentEvent(elastic::Promised{run_->stops().promise()}));
}

void Incarnation::carry_out(const elastic::StopAtRound& stop) {
  if (run_) run_->stops().stop_after(stop.round);
}

void Incarnation::carry_out(const elastic::Abort& abort) {
  if (run_) run_->abort(abort.reason);
}

// For a while there were the base, what came from others, and the copy that is trained on.
void Incarnation::carry_out(const elastic::ReleaseBase& /*release*/) {
  held_.reset();
  copies_.clear();
  return_free_memory();
}

void Incarnation::carry_out(const elastic::Rejoin& rejoin) {
  parts_.log(LogLine("rejoining").add("reason", rejoin.reason).text());
  end_ = End{rejoin.after, std::nullopt};
}

void Incarnation::carry_out(const elastic::Exit& exit) {
  end_ = End{std::nullopt, exit.error};
  if (!exit.error && !saved_) end_->error = saved_.error();
}

// ---- what happened ----

void Incarnation::on_training_ended(const elastic::TrainingEnded& ended) {
  const bool is_broken = ended.how == elastic::TrainingEnded::How::kBroken;
  clock_.ended(boot_now(), is_broken ? parts_.watch.last_end() : 0);
  LogLine event("training_ended");
  event.add("generation", ended.attempt.generation.value).add("how", is_broken ? "broken" : "in order");
  if (ended.held.position) event.add("position", ended.held.position->value);
  // The transport numbers workers; people know them by name.
  if (ended.lost) {
    event.add("lost", name_of(*ended.lost)).add("reason", ended.lost_is_dead ? "it died" : "it does not answer");
  } else if (ended.error) {
    event.add("reason", ended.error->line());
  }
  parts_.log(event.text());
  if (!run_) return;
  old_lines_.reset();
  if (is_broken) old_lines_ = run_->old_lines(boot_now());
  if (run_->held()) held_ = run_->held();
  copies_[ended.attempt.generation] = run_->kept_copies();
  saved_ = run_->saved();
  // Its checkpoint writer may be waiting for the disk, and others for word of what is held here.
  retirement_ = std::jthread([run = std::move(run_)]() mutable { run.reset(); });
}

}  // namespace everstep::launcher
