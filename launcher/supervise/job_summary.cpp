#include "launcher/supervise/job_summary.h"

#include <algorithm>

#include "elastic/records.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/supervise/run_end.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kSummaryDeadline{1'000};

scheduler::Plan last_plan(const JobEnd& job) {
  const auto reply = job.store.transact({{}, {elastic::get(job.keys.generation())}, {}}, kSummaryDeadline);
  if (!reply || reply->reads.at(0).empty()) return job.run.plan.plan;
  const auto generation = elastic::parse_generation(reply->reads[0].front().value);
  return generation ? generation->roster.plan : job.run.plan.plan;
}

// The newest checkpoint as the files tell.
std::optional<storage::CatalogEntry> newest_checkpoint(const PreparedRun& run) {
  if (!run.checkpoints) return std::nullopt;
  const auto listing = run.checkpoints->store->catalog().list();
  return listing && !listing->entries.empty() ? std::optional(listing->entries.front()) : std::nullopt;
}

std::optional<trainer::CheckpointCounts> counts_of(const JobEnd& job) {
  if (!job.run.checkpoints) return std::nullopt;
  trainer::CheckpointCounts counts;
  counts.skipped = job.end.saves_skipped;
  counts.failed = job.end.saves_failed;
  const auto newest = newest_checkpoint(job.run);
  if (!newest) return counts;
  const std::int64_t before = job.run.checkpoints->found ? job.run.checkpoints->found->sequence : 0;
  counts.saved = std::max<std::int64_t>(0, newest->head.sequence - before);
  if (counts.saved > 0) counts.last_step = newest->manifest.version.value;
  return counts;
}

}  // namespace

RunSummary summarize(const JobEnd& job, const RunReporter& reporter, const GenerationTally& tally) {
  RunSummary summary;
  if (reporter.last()) {
    summary.steps = reporter.last()->step;
    summary.loss = reporter.last()->loss;
    summary.skipped = reporter.last()->skipped_in_all;
  }
  for (const Finished& worker : job.end.finished) {
    summary.steps = std::max(summary.steps, worker.steps);
    summary.skipped = std::max(summary.skipped, worker.skipped);
    summary.peak_bytes = std::max(summary.peak_bytes, worker.peak_bytes);
  }
  summary.validation_loss = reporter.validation_loss();
  summary.rate = reporter.statistics().steady();
  summary.seconds = reporter.statistics().seconds();
  summary.predicted_bytes = job.run.plan.predicted_bytes + job.run.plan.copy_bytes;
  summary.plan = last_plan(job);
  summary.checkpoints = counts_of(job);
  if (job.end.left_to_others && summary.checkpoints) {
    summary.steps = summary.checkpoints->last_step.value_or(summary.steps);
  }
  const std::int64_t minibatches = (summary.steps - job.run.steps_before()) * summary.plan.window;
  summary.elastic = tally.counts(minibatches, summary.seconds);
  summary.output = job.run.directory.path;
  return summary;
}

Failure lost_without_etcd(const JobEnd& job, const RunReporter& reporter) {
  Failure failure = *job.end.failure;
  std::string reached = std::to_string(reporter.last() ? reporter.last()->step : job.run.steps_before());
  if (job.end.stop_signal) reached += " by " + signal_name(*job.end.stop_signal);
  failure.error.message = "ended at step " + reached + ": " + failure.error.message;
  if (!job.run.checkpoints) return failure;
  const auto newest = newest_checkpoint(job.run);
  failure.error.message += newest
                               ? "; the newest checkpoint is of step " + std::to_string(newest->manifest.version.value)
                               : "; there is no checkpoint yet";
  if (newest) failure.error.hint.clear();  // the command that goes on from it follows
  return failure;
}

Outcome check_last_checkpoint(const JobEnd& job, const RunSummary& summary) {
  if (!summary.checkpoints || summary.checkpoints->last_step == summary.steps) return {};
  if (summary.steps == job.run.steps_before()) return {};
  return last_checkpoint_lost({ErrorCode::kUnavailable,
                               "the newest is of step " +
                                   std::to_string(summary.checkpoints->last_step.value_or(job.run.steps_before())) +
                                   ", not " + std::to_string(summary.steps),
                               "the workers' logs are in " + job.run.directory.path});
}

}  // namespace everstep::launcher
