// What a worker tells people: names, the price of a change, progress.
#include <algorithm>
#include <cmath>

#include "launcher/cli/boot_clock.h"
#include "launcher/job/train_plan.h"
#include "launcher/worker/member_loop.h"
#include "scheduler/stragglers.h"

namespace everstep::launcher {
namespace {

using elastic::GenerationRecord;

constexpr std::chrono::milliseconds kNewsDeadline{1000};
constexpr Tick kShowEvery = 2 * kTicksPerSecond;
constexpr Tick kTicksPerMicrosecond = kTicksPerSecond / 1'000'000;

std::string_view origin_text(const elastic::Origin& origin) {
  switch (origin.kind) {
    case elastic::Origin::Kind::kBeginning:
      return "beginning";
    case elastic::Origin::Kind::kCheckpoint:
      return "checkpoint";
    case elastic::Origin::Kind::kMemory:
      return "memory";
    case elastic::Origin::Kind::kCopies:
      return "copies";
    case elastic::Origin::Kind::kSums:
      return "sums";
  }
  EVERSTEP_CHECK(false, "an origin that is none");
}

}  // namespace

std::string MemberLoop::name_of(const WorkerId& id) const {
  const auto member = read_member(view_.view(), parts_.keys, id);
  if (member) return member->name;
  const auto known = names_.find(id);
  return known == names_.end() ? to_string(id) : known->second;
}

// Whoever came in new knows nothing of what the change cost; one that was there before does, if there is one.
bool MemberLoop::is_witness(const GenerationRecord& generation) const {
  if (!generation.from) return true;
  const std::vector<WorkerId>& before = generation.from->plan.workers;
  const std::vector<WorkerId>& now = generation.roster.plan.workers;
  const auto was_there = [&](const WorkerId& id) { return std::ranges::find(before, id) != before.end(); };
  return was_there(self_) || std::ranges::none_of(now, was_there);
}

void MemberLoop::on_first_update() {
  if (!run_) return;
  const GenerationRecord& generation = run_->generation();
  const scheduler::Plan& plan = generation.roster.plan;
  GenerationChanged changed;
  changed.generation = generation.roster.attempt.generation;
  changed.plan = describe(plan.kind, plan.depth, plan.pipelines, plan.width);
  changed.workers = static_cast<int>(plan.workers.size());
  changed.spares = static_cast<int>(plan.spares.size());
  changed.reason = generation.reason;
  changed.origin = origin_text(generation.origin);
  changed.step = generation.origin.position.value / plan.window;
  changed.phases = clock_.phases();
  changed.stall = clock_.stall();
  changed.redone = redone_;
  const bool was_planned = generation.origin.kind == elastic::Origin::Kind::kMemory && generation.from;
  parts_.progress.on_change(changed.stall, changed.redone, plan.window, was_planned);
  parts_.metrics.change([&](WorkerMetrics& metrics) {
    metrics.generation = changed.generation.value;
    metrics.workers = changed.workers;
    metrics.phase_seconds = {changed.phases.detect, changed.phases.agree, changed.phases.connect, changed.phases.move,
                             changed.phases.first_step};
  });
  if (is_witness(generation)) parts_.tell(changed);
}

// How fast each worker is, for people and for whoever leads.
void MemberLoop::add_speeds(elastic::ProgressRecord& record) const {
  const elastic::RosterRecord& roster = run_->generation().roster;
  const RunProgress::Speeds speeds = parts_.progress.speeds();
  record.generation = roster.attempt.generation;
  record.updates = speeds.updates;
  record.update_us = speeds.update_time / kTicksPerMicrosecond;
  record.switch_ms = std::llround(1e3 * speeds.switch_seconds);
  for (const std::vector<Tick>& stages : speeds.stage_times) {
    for (const Tick time : stages) record.stage_us.push_back(static_cast<int>(time / kTicksPerMicrosecond));
  }
  // The model's own times are no measure of stages that wait as long whatever they have: one with few blocks would seem
  // slow.
  if (parts_.job.request.plan.hardware.stage_times) return;
  const scheduler::ModelProfile profile = train_profile(parts_.job.request);
  for (const double slowness : measured_slowness(roster.plan, profile, speeds.stage_times)) {
    record.slowness_percent.push_back(static_cast<int>(std::lround(100 * slowness)));
  }
}

// A write that fails is made up for by the next.
void MemberLoop::show_progress() {
  const Tick now = boot_now();
  if (now - progress_shown_ < kShowEvery || !run_) return;
  progress_shown_ = now;
  const RunProgress::Now progress = parts_.progress.now();
  const std::int64_t steps = parts_.job.request.options.steps;
  const trainer::CheckpointCounts saves = commits_.counts();
  parts_.metrics.change([&](WorkerMetrics& metrics) {
    metrics.step = progress.last.step;
    metrics.steps = steps;
    metrics.loss = progress.last.loss;
    metrics.validation_loss = progress.validation_loss;
    metrics.learning_rate = progress.last.learning_rate;
    metrics.gradient_norm = progress.last.gradient_norm;
    metrics.updates_skipped = progress.last.skipped_in_all;
    metrics.seconds_left = to_seconds(progress.window_time) * static_cast<double>(steps - progress.last.step);
    metrics.tokens = progress.tokens;
    metrics.busy = progress.last.busy;
    metrics.goodput = progress.goodput;
    metrics.stall_seconds = progress.stall_seconds;
    metrics.minibatches_redone = progress.redone;
    metrics.saves_done = saves.saved;
    metrics.saves_failed = saves.failed;
    metrics.fenced_calls = parts_.connector.fenced();
  });
  if (run_->generation().roster.plan.workers.front() != self_) return;
  elastic::ProgressRecord record;
  record.step = progress.last.step;
  record.steps = steps;
  record.loss = progress.last.loss;
  record.validation_loss = progress.validation_loss;
  record.learning_rate = progress.last.learning_rate;
  record.gradient_norm = progress.last.gradient_norm;
  record.skipped = progress.last.skipped_in_all;
  record.tokens_per_second = progress.tokens_per_second;
  record.busy = progress.last.busy;
  for (const Tick time : progress.last.computed) {
    record.computed_us.push_back(static_cast<int>(time / kTicksPerMicrosecond));
  }
  add_speeds(record);
  record.goodput = progress.goodput;
  record.state = agent_.state();
  (void)parts_.kv.transact({{}, {elastic::put(parts_.keys.progress(), to_text(record), lease_)}}, kNewsDeadline);
}

}  // namespace everstep::launcher
