#include "launcher/worker/generation_run.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/log_line.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/host.h"
#include "launcher/job/resume_rules.h"
#include "launcher/job/train_plan.h"
#include "launcher/worker/crash_report.h"
#include "launcher/worker/stage_hooks.h"
#include "launcher/worker/worker_process.h"
#include "scheduler/guards.h"
#include "storage/catalog_documents.h"
#include "trainer/checkpoints/caught.h"
#include "trainer/checkpoints/commit_assembly.h"
#include "trainer/checkpoints/parallel.h"
#include "trainer/checkpoints/restore.h"
#include "trainer/emulated/slowed_stage.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

using elastic::Origin;
using elastic::TrainingEnded;

// Dead peers are told by their lifelines and hung ones lose their leases, so a frame may take as long as it likes.
constexpr std::chrono::minutes kFramePatience{60};
// For a group that stops by itself, besides the few super-rounds that are always waited for.
constexpr std::chrono::seconds kGroupStopLimit{1};
// All have drained when one has, up to the last message on its way.
constexpr std::chrono::seconds kGoodbyePatience{2};

// −1: it is not among them.
int place_in(const std::vector<WorkerId>& ids, const WorkerId& id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  return found == ids.end() ? -1 : static_cast<int>(found - ids.begin());
}

int number_in(const elastic::RosterRecord& roster, const WorkerId& id) {
  const int number = place_in(roster.connected(), id);
  EVERSTEP_CHECK(number >= 0, "a worker trains in generations that name it");
  return number;
}

// Per stage, as the transport numbers the plan's workers.
std::vector<std::vector<int>> places_of_guards(const scheduler::Plan& plan) {
  std::vector<std::vector<int>> places(plan.cuts.size() - 1);
  for (std::size_t stage = 0; stage < plan.guards.size(); ++stage) {
    for (const WorkerId& guard : plan.guards[stage]) places[stage].push_back(place_in(plan.workers, guard));
  }
  return places;
}

trainer::PlanShape shape_of(const scheduler::Plan& plan) { return {request_of(plan), plan.cuts}; }

}  // namespace

GenerationRun::GenerationRun(const TrainingGround& ground, Start start, RunCallbacks callbacks)
    : ground_(ground),
      start_(std::move(start)),
      callbacks_(std::move(callbacks)),
      number_(number_in(start_.generation.roster, ground.self)),
      lines_(std::make_unique<PeerLines>(start_.generation.roster.attempt, start_.generation.roster.connected(),
                                         start_.connection.news)),
      acks_(ground.kv, ground.keys, start_.generation.roster.attempt, start_.opened, ground.self,
            callbacks_.on_commit_waiting) {
  if (!is_donor()) {
    if (keeps_copies(plan(), ground_.request.plan.redundancy)) copies_ = std::make_shared<trainer::StateCopies>();
    writer_ = std::make_unique<trainer::CheckpointWriter>(
        writer_setup(), ground_.checkpoints.ports(), [this](const trainer::SaveWord& word) {
          const auto* skipped = std::get_if<trainer::SaveSkipped>(&word);
          skipped != nullptr ? callbacks_.on_save_skipped(skipped->position) : acks_.tell(word);
        });
  }
  thread_ = std::thread([this] { run(); });
}

// A thread that hangs in an op can be neither ended nor waited for; others go on without this process.
GenerationRun::~GenerationRun() {
  abort("the generation is over");
  constexpr std::chrono::seconds kPatience{5};
  while (has_ended_.wait_for(kPatience) != std::future_status::ready) {
    if (ground_.watch.makes_progress()) continue;
    log_event(LogLine("hung").add("reason", "an op does not end").text());
    std::_Exit(static_cast<int>(ExitCode::kRestart));
  }
  thread_.join();
}

void GenerationRun::abort(const std::string& reason) {
  is_aborted_ = true;
  stops_.give_up();
  acks_.give_up();
  if (writer_) writer_->break_off();
  const std::scoped_lock lock(transport_mutex_);
  if (!has_left_) start_.connection.transport->abort({ErrorCode::kCancelled, reason, ""});
}

void GenerationRun::close_to_others() {
  const std::scoped_lock lock(transport_mutex_);
  has_left_ = true;
}

// The training thread finds out by itself wherever it waits for frames. At the end of a run it waits for a verdict.
void GenerationRun::notice_loss() {
  if (!has_lost_a_peer()) return;
  acks_.give_up();
  stops_.give_up();
  if (writer_) writer_->break_off();
}

bool GenerationRun::has_lost_a_peer() {
  const std::scoped_lock lock(transport_mutex_);
  return !has_left_ && start_.connection.transport->lost();
}

void GenerationRun::take(const trainer::Verdict& verdict) {
  if (writer_) writer_->take(verdict);
}

void GenerationRun::run() {
  auto ended = trainer::caught([this]() -> Result<TrainingEnded> { return work(); });
  trainer::forget_freed_tensors();
  callbacks_.on_end(ended ? *std::move(ended) : broken(ended.error()));
  ended_.set_value();
}

TrainingEnded GenerationRun::work() {
  set_crash_generation(start_.generation.roster.attempt.generation);
  trainer::Transport& transport = *start_.connection.transport;
  std::optional<trainer::MovedState> moved;
  if (start_.generation.from) {
    auto state = move_origin();
    if (!state) return broken(state.error());
    if (is_donor()) {
      close_to_others();
      transport.leave();
      return {start_.generation.roster.attempt, TrainingEnded::How::kHandedOver, {}, {}, false, {}, false};
    }
    moved = std::move(state).value();
  }
  auto trained = train_from(std::move(moved));
  if (!trained) return broken(trained.error());
  if (trained->end == trainer::RunEnd::kGroupStop) {
    // All of the group know it, and none of them keeps what would spoil the window again.
    if (!trained->state.resume.finite) {
      return broken({ErrorCode::kUnavailable, "another group lost a worker, and this one's sums are not finite", ""});
    }
    return stopped_in_group(std::move(trained->state));
  }
  // The last steps count once they are in a checkpoint. Until then they may have to be run again.
  const bool is_cancelled = !trained->saved && trained->saved.error().code == ErrorCode::kCancelled;
  if (is_cancelled && trained->end == trainer::RunEnd::kAllSteps) return broken(trained->saved.error());
  saved_ = trained->saved;
  std::vector<trainer::WindowHistory> history = writer_->uncommitted();
  trainer::EndState& state = trained->state;
  history.insert(history.end(), state.resume.history.begin(), state.resume.history.end());
  state.resume.history = std::move(history);
  end_state_ = std::make_shared<const trainer::EndState>(std::move(state));
  // A peer that dies from now on is no loss to this generation, which has ended.
  close_to_others();
  // Without a goodbye its end would count as a death.
  if (!transport.close(kGoodbyePatience)) transport.leave();
  TrainingEnded ended{
      start_.generation.roster.attempt, TrainingEnded::How::kStopped, held_copies(), {}, false, {}, false};
  ended.held.position = end_state_->resume.position;
  ended.held.of = start_.generation.roster.attempt.generation;
  if (trained->end == trainer::RunEnd::kAllSteps) {
    ended.how = TrainingEnded::How::kFinished;
    ended.held.finished = true;
  }
  return ended;
}

GenerationCopies GenerationRun::copies() const {
  if (!copies_) return {};
  return {copies_, writer_->uncommitted(), plan().window};
}

elastic::HeldRecord GenerationRun::held_copies() const {
  elastic::HeldRecord held;
  held.copies = copies().held(start_.generation.roster.attempt.generation);
  return held;
}

TrainingEnded GenerationRun::stopped_in_group(trainer::EndState state) {
  sums_ = std::make_shared<const trainer::EndState>(std::move(state));
  TrainingEnded ended = broken({ErrorCode::kUnavailable, "a worker of another group died; this one kept its sums", ""});
  ended.held.sums = sums().what;
  return ended;
}

GroupSums GenerationRun::sums() const {
  if (!sums_) return {};
  const trainer::ResumePoint& resume = sums_->resume;
  const elastic::HeldSums what{start_.generation.roster.attempt.generation, resume.position, number_ / plan().depth,
                               static_cast<int>(resume.in_sums.size())};
  return {sums_, what, writer_->uncommitted(), plan().window};
}

TrainingEnded GenerationRun::broken(const Error& error) {
  trainer::Transport& transport = *start_.connection.transport;
  TrainingEnded ended{start_.generation.roster.attempt,
                      TrainingEnded::How::kBroken,
                      held_copies(),
                      {},
                      false,
                      error,
                      origin_is_damaged_};
  ended.is_faulty = is_faulty_;
  ended.is_hopeless = is_hopeless_;
  ended.held.anomaly = anomaly_;
  // Peers that stop for the same reason are not lost.
  if (const auto lost = transport.lost(); lost && !is_aborted_ && !anomaly_) {
    ended.lost = start_.generation.roster.connected()[lost->worker];
    ended.lost_is_dead = lost->how == trainer::LostPeer::How::kClosed;
    if (lost->how == trainer::LostPeer::How::kRefused) ended.lost.reset();
  }
  close_to_others();
  transport.break_off();
  return ended;
}

trainer::TransferRequest GenerationRun::transfer() const {
  const elastic::GenerationRecord& generation = start_.generation;
  const bool is_group_sums = generation.origin.kind == Origin::Kind::kSums;
  const scheduler::Plan before =
      is_group_sums ? plan_of_group(generation.from->plan, generation.origin.group) : generation.from->plan;
  trainer::TransferRequest change;
  change.is_group_sums = is_group_sums;
  change.before = shape_of(before);
  change.after = shape_of(plan());
  const std::vector<WorkerId> connected = generation.roster.connected();
  for (const WorkerId& id : before.workers) change.holders.push_back(place_in(connected, id));
  change.inside_window = generation.origin.position.value % plan().window != 0;
  if (generation.origin.kind == Origin::Kind::kCopies) {
    trainer::CopyMap& copies = change.copies.emplace();
    copies.guards = places_of_guards(before);
    copies.complete.resize(before.workers.size());
    for (const elastic::CopyHolder& holder : generation.holders) {
      const int place = place_in(before.workers, holder.id);
      if (place >= 0) copies.complete[place] = {holder.owned, holder.guarded};
    }
  }
  return change;
}

Result<trainer::MovedState> GenerationRun::move_origin() {
  const elastic::GenerationRecord& generation = start_.generation;
  trainer::TransferJob job;
  job.change = transfer();
  job.model = ground_.request.options.model;
  job.accumulation = ground_.request.options.accumulation;
  job.position = generation.origin.position;
  job.lineage = ground_.lineage;
  job.generation = generation.roster.attempt.generation;
  job.timeout = kFramePatience;
  trainer::Transport& transport = *start_.connection.transport;
  return job.change.copies ? move_state(transport, job, start_.copies.get())
                           : move_state(transport, job, start_.end_state.get());
}

Result<trainer::TrainResult> GenerationRun::train_from(std::optional<trainer::MovedState> moved) {
  trainer::TrainOptions options = train_options_of(ground_.request, {plan(), 0, 0, 0, ""}, ground_.lineage);
  options.generation = start_.generation.roster.attempt.generation;
  options.peer_timeout = kFramePatience;
  options.group_stop_limit = kGroupStopLimit;
  options.checkpoints.at_end = true;
  if (copies_) options.guards = places_of_guards(plan());
  leave_out_and_watch(options);
  trainer::TrainHooks hooks = this->hooks();
  if (moved) {
    options.resume = moved->resume;
    hooks.restore = [&](const trainer::StageLayout& layout, const trainer::StageState& state) {
      return restore_from(*moved, layout, state);
    };
    hooks.on_begin = [this, &moved] {
      moved.reset();
      callbacks_.on_moved();
    };
  } else if (start_.generation.origin.kind == Origin::Kind::kCheckpoint) {
    EVERSTEP_TRY(restore_checkpoint(options, hooks));
  }
  return ground_.device.train(options, ground_.data, *start_.connection.transport, start_.links.get(), hooks,
                              &ground_.watch.device());
}

// What the generation says about gradients that must not be applied.
void GenerationRun::leave_out_and_watch(trainer::TrainOptions& options) const {
  for (const Position& position : start_.generation.left_out) options.blanks.push_back({position, 0, true});
  options.anomalies.stops = true;
  if (const auto& trial = start_.generation.trial) {
    options.anomalies.window = trial->report.window;
    options.anomalies.norm_limit = trial->report.norm_limit;
    options.anomalies.skips = trial->skips;
  }
}

Status GenerationRun::restore_checkpoint(trainer::TrainOptions& options, trainer::TrainHooks& hooks) {
  if (!start_.head || to_string(start_.head->manifest) != start_.generation.origin.manifest) {
    return Error{ErrorCode::kUnavailable, "HEAD is not the checkpoint that the generation starts from", ""};
  }
  auto manifest = storage::read_manifest(ground_.checkpoints.ports(), *start_.head);
  if (!manifest) return damaged_origin(manifest.error());
  manifest_ = std::move(manifest).value();
  options.resume = resume_point(*manifest_, plan());
  hooks.restore = [this, threads = writer_setup().threads](const trainer::StageLayout& layout,
                                                           const trainer::StageState& state) {
    const trainer::TrainOptions& wanted = ground_.request.options;
    const Status restored = trainer::restore_stage(ground_.checkpoints.files(), *manifest_, wanted.model,
                                                   wanted.accumulation, layout, state, threads);
    return restored ? Status() : Status(damaged_origin(restored.error()));
  };
  return {};
}

// Falling back changes what the job descends from, which is for `everstep resume` to record.
Error GenerationRun::damaged_origin(Error error) {
  const bool is_damage = error.code == ErrorCode::kDataLoss || error.code == ErrorCode::kNotFound;
  if (!is_damage) return error;
  origin_is_damaged_ = true;
  error.code = ErrorCode::kDataLoss;
  error.message = "the newest checkpoint is damaged: " + error.message;
  error.hint = "everstep resume --from=" + ground_.request.checkpoints->store.path() +
               " goes on from the newest one that verifies";
  return error;
}

trainer::TrainHooks GenerationRun::hooks() {
  trainer::TrainHooks hooks;
  hooks.now = monotonic_now;
  hooks.recorder = &ground_.recorder;
  hooks.stops = &stops_;
  hooks.checkpoints = writer_.get();
  hooks.copies = copies_.get();
  hooks.on_wrong_replica = [this](const trainer::WrongReplica& wrong) { is_faulty_ = wrong.worker == number_; };
  hooks.on_anomaly = [this](const trainer::Anomaly& anomaly) {
    anomaly_ = {anomaly.window, {}, {}, false, anomaly.norm_limit};
    if (!anomaly.source) return;
    anomaly_->minibatch = anomaly.source->position;
    anomaly_->suspect = plan().workers[anomaly.source->worker];
    anomaly_->repeats = anomaly.source->repeats;
  };
  hooks.on_begin = callbacks_.on_moved;
  hooks.on_step = [this](const trainer::StepReport& report) {
    start_.end_state.reset();
    start_.copies.reset();
    const std::int64_t most = ground_.request.options.anomalies.most_in_a_row;
    is_hopeless_ = most > 0 && report.skipped_in_a_row >= most;
    callbacks_.on_step(report);
  };
  hooks.on_validation = callbacks_.on_validation;
  add_stage_hooks(ground_.request, plan(), hooks);
  hooks.make_stage = [this, make = hooks.make_stage](const trainer::StageRequest& stage) {
    auto made = make(stage);
    if (ground_.slowdown > 1) made = make_slowed_stage(std::move(made), ground_.slowdown, stage.device);
    return ground_.watch.watch(std::move(made), stage.device);
  };
  return hooks;
}

trainer::WriterSetup GenerationRun::writer_setup() const {
  trainer::WriterSetup setup;
  setup.job = ground_.request.checkpoints->store.job;
  setup.lineage = ground_.lineage;
  setup.generation = start_.generation.roster.attempt.generation;
  setup.rank = number_;
  setup.threads = trainer::file_threads(static_cast<int>(plan().workers.size()));
  setup.model = ground_.request.options.model;
  setup.accumulation = ground_.request.options.accumulation;
  return setup;
}

}  // namespace everstep::launcher
