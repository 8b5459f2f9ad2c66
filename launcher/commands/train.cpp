#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/log_line.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/output_file.h"
#include "launcher/files.h"
#include "launcher/lineage.h"
#include "launcher/train/checkpoint_committer.h"
#include "launcher/train/checkpoint_session.h"
#include "launcher/train/host.h"
#include "launcher/train/run_directory.h"
#include "launcher/train/run_reporter.h"
#include "launcher/train/run_summary.h"
#include "launcher/train/run_trace.h"
#include "launcher/train/supervisor.h"
#include "launcher/train/train_plan.h"
#include "launcher/train/worker_arguments.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestWorkerTrace = std::size_t{1} << 30;

// All that is known before the first worker starts.
struct Job {
  Config config;  // in force
  TrainRequest request;
  TrainPlan plan;
  std::uint64_t lineage = 0;
  RunDirectory directory;
  std::optional<CheckpointSession> checkpoints;

  // A run that goes on has been here before.
  std::int64_t steps_before() const {
    return checkpoints && checkpoints->start ? checkpoints->start->manifest.version.value : 0;
  }
  int workers() const { return static_cast<int>(plan.plan.workers.size()); }
};

Outcome check_pipelines(const Config& config, const Job& job) {
  const scheduler::Plan& plan = job.plan.plan;
  if (job.request.pipelines.value_or(plan.pipelines) == plan.pipelines) return {};
  return config.reject("pipelines", "the plan is " + describe(plan.kind, plan.depth, plan.pipelines, plan.width),
                       "amdp has half as many pipelines as its depth, two-directions two, the others one");
}

// Workers open the data for themselves; here it is only to find what is wrong with it before they start.
Outcome check_data(const Config& config, const TrainRequest& request) {
  if (!request.data) return {};
  const auto data = open_data(*request.data, request.options.model);
  if (!data) return config.blame("data", data.error());
  if (request.options.evaluate_every > 0 && (*data)->validation_minibatches() == 0) {
    return config.reject("eval-every", "there is not one minibatch of data to validate on",
                         "a larger --validation-fraction, or more data");
  }
  return {};
}

// A run that goes on has the settings of its checkpoint where it has none of its own.
Outcome open_checkpoints(const Config& config, Job& job, Streams& streams) {
  Outcome failure = open_session(config, job.request, job.plan, job.lineage, streams, job.checkpoints.emplace());
  if (failure) return failure;
  job.lineage = job.checkpoints->lineage;
  job.config = job.checkpoints->config;
  job.request = read_train_request(job.config, host_memory_bytes(), failure);
  return failure;
}

// Everything that can be checked is, before the run's directory is made: a refusal leaves nothing behind.
Outcome prepare(const Config& config, Job& job, Streams& streams) {
  Outcome failure;
  job.config = config;
  job.request = read_train_request(config, host_memory_bytes(), failure);
  if (failure) return failure;
  auto plan = make_train_plan(job.request);
  if (!plan) return plan.error();
  job.plan = *std::move(plan);
  failure = check_pipelines(config, job);
  if (!failure) failure = check_data(config, job.request);
  if (failure) return failure;
  job.lineage = random_lineage();
  return job.request.checkpoints ? open_checkpoints(config, job, streams) : Outcome();
}

Outcome make_directory(Job& job) {
  const bool is_named = !job.request.output.empty();
  const bool goes_on = job.request.checkpoints && job.request.checkpoints->resume != ResumeWish{};
  auto directory =
      make_run_directory(is_named ? job.request.output : default_run_path(std::time(nullptr), job.lineage), goes_on);
  if (!directory) return job.config.blame("output", directory.error());
  job.directory = *std::move(directory);
  if (const Status kept = write_file(job.directory.config(), print_config(job.config)); !kept) return kept.error();
  return {};
}

void log_plan(const Job& job, Streams& streams) {
  const scheduler::Plan& plan = job.plan.plan;
  streams.log << LogLine("plan_chosen")
                     .add("plan", describe(plan.kind, plan.depth, plan.pipelines, plan.width))
                     .add("window", plan.window)
                     .add("workers", job.workers())
                     .add("reason", job.plan.reason)
                     .text()
              << std::endl;
  const int idle = job.request.workers - job.workers();
  if (idle > 0) streams.log << LogLine("workers_not_needed").add("workers", idle).text() << std::endl;
}

WorkerIdentity identity_of(const Job& job, int rank) {
  WorkerIdentity identity{rank, job.lineage, job.directory.path};
  if (job.checkpoints) {
    identity.generation = job.checkpoints->generation;
    if (job.checkpoints->start) identity.start_from = job.checkpoints->start->head.manifest;
  }
  return identity;
}

Supervision supervision_of(const Job& job, RunReporter& reporter) {
  Supervision supervision;
  for (int rank = 0; rank < job.workers(); ++rank) {
    supervision.workers.push_back({sibling_program("everstep-worker"),
                                   worker_arguments(job.config, identity_of(job, rank)),
                                   job.directory.worker_log(rank)});
  }
  supervision.setup = describe_setup(job.plan.plan);
  supervision.timeout = job.request.options.peer_timeout;
  supervision.on_start = [&reporter] { reporter.on_start(monotonic_now()); };
  supervision.on_step = [&reporter](const trainer::StepReport& report) { reporter.on_step(report); };
  supervision.on_validation = [&reporter](const Validation& validation) { reporter.on_validation(validation.loss); };
  supervision.on_event = [&reporter](const std::string& event) { reporter.note(event); };
  supervision.on_stop_request = [&reporter](int signal) {
    reporter.note(LogLine("stopping")
                      .add("signal", signal_name(signal))
                      .add("until", "the end of the window")
                      .add("at_once", "with a second signal")
                      .text());
  };
  return supervision;
}

RunSummary summary_of(const Job& job, const RunReporter& reporter, const std::vector<Finished>& finished) {
  RunSummary summary;
  summary.steps = finished.front().steps;
  summary.skipped = finished.front().skipped;
  if (reporter.last()) summary.loss = reporter.last()->loss;
  summary.validation_loss = reporter.validation_loss();
  summary.rate = reporter.statistics().steady();
  summary.seconds = reporter.statistics().seconds();
  for (const Finished& worker : finished) summary.peak_bytes = std::max(summary.peak_bytes, worker.peak_bytes);
  summary.predicted_bytes = job.plan.predicted_bytes;
  summary.plan = job.plan.plan;
  summary.output = job.directory.path;
  return summary;
}

Outcome write_trace(const Job& job, Streams& streams) {
  std::vector<std::string> workers;
  for (int rank = 0; rank < job.workers(); ++rank) {
    auto text = read_file(job.directory.worker_trace(rank), kLargestWorkerTrace);
    if (!text) return text.error();
    workers.push_back(*std::move(text));
  }
  const auto trace = merge_traces(job.plan.plan, workers);
  if (!trace) return trace.error();
  if (auto failure = write_output_file(job.config, "trace", *trace, streams)) return failure;
  for (int rank = 0; rank < job.workers(); ++rank) std::filesystem::remove(job.directory.worker_trace(rank));
  return {};
}

std::unique_ptr<CheckpointCommitter> make_committer(const Job& job) {
  if (!job.checkpoints) return nullptr;
  return std::make_unique<CheckpointCommitter>(facts_of(*job.checkpoints, job.request, job.plan), job.workers(),
                                               job.request.checkpoints->retention, job.checkpoints->store->ports(),
                                               job.checkpoints->start);
}

// The run is not over before its last checkpoint is.
void await(CheckpointCommitter* committer, RunReporter& reporter) {
  if (committer == nullptr) return;
  committer->finish();
  for (const CheckpointCommitter::News& news : committer->take_news()) {
    if (!news.event.empty()) reporter.note(news.event);
  }
}

// Training may have ended well and yet be lost.
Outcome failure_of_last_checkpoint(const CheckpointCommitter* committer) {
  if (committer == nullptr) return {};
  const Status last = committer->last();
  if (last) return {};
  Error error = last.error();
  error.message = "training ended, but its last checkpoint could not be saved: " + error.message;
  return Failure(std::move(error));
}

Outcome run(const Config& config, Streams& streams) {
  Job job;
  Outcome failure = prepare(config, job, streams);
  if (failure) return failure;
  const trainer::TrainOptions& options = job.request.options;
  if (job.steps_before() >= options.steps) {
    streams.log << LogLine("nothing_to_do").add("step", job.steps_before()).add("steps", options.steps).text()
                << std::endl;
    const storage::Manifest& last = job.checkpoints->start->manifest;
    streams.out << (job.request.json ? idle_summary_json(last) + "\n" : idle_summary_text(last));
    return {};
  }
  failure = make_directory(job);
  if (failure) return failure;
  log_plan(job, streams);
  if (job.checkpoints && job.checkpoints->start) {
    streams.log << resumed_event(*job.checkpoints, job.plan) << std::endl;
  }

  RunReporter reporter({options.steps, options.evaluate_every,
                        options.model.tokens_per_minibatch() * job.plan.plan.window, job.directory.metrics()},
                       streams);
  const auto committer = make_committer(job);
  Supervision supervision = supervision_of(job, reporter);
  supervision.committer = committer.get();
  const SupervisionEnd end = supervise(supervision);
  await(committer.get(), reporter);
  reporter.on_end();
  if (end.failure) return end.failure;

  if (!job.request.trace.empty()) failure = write_trace(job, streams);
  RunSummary summary = summary_of(job, reporter, end.finished);
  if (committer) summary.checkpoints = committer->counts();
  streams.out << (job.request.json ? summary_json(summary) + "\n" : summary_text(summary));
  if (!failure) failure = failure_of_last_checkpoint(committer.get());
  if (failure || summary.steps == options.steps) return failure;
  return Failure({ErrorCode::kCancelled,
                  "stopped after " + std::to_string(summary.steps) + " of " + std::to_string(options.steps) +
                      " steps: " + signal_name(end.stop_signal.value_or(0)),
                  ""});
}

}  // namespace

Command train_command() {
  CommandSpec spec;
  spec.name = "train";
  spec.summary = "Train a model with worker processes on this host";
  spec.text =
      "Plans as everstep plan does, starts one process per worker, trains, and prints the result. A worker that dies "
      "or "
      "is silent for too long ends the run. Ctrl-C or SIGTERM ends it after the current window, a second one at once.\n"
      "The output directory has metrics.jsonl with an object per update, config.txt with the configuration in force, "
      "and a log per worker. Speed and busy share in the result leave out the first tenth of the updates (at least "
      "one, at most ten) and the last one, where the pipeline fills and drains.\n"
      "With --checkpoint-dir the whole state is saved while training goes on, at the end and when it is stopped, and "
      "--resume goes on from there, also with another number of workers or another plan; from a checkpoint that was "
      "taken in the middle of a run, under the same plan, as if nothing had happened. A save that fails is reported "
      "and tried again later. A step that "
      "is done again stands in metrics.jsonl twice.";
  spec.examples = {"everstep train --workers=4 --data=examples/corpus.txt",
                   "everstep train --workers=2 --data=corpus.bin --model=gpt2-small --window=32 --steps=1000 --lr=6e-4 "
                   "--eval-every=100 --output=runs/first",
                   "everstep train --workers=8 --emulate=10:20 --schedule=amdp --depth=8 --window=32 --json"};
  spec.examples.emplace_back(
      "everstep train --workers=4 --data=examples/corpus.txt --checkpoint-dir=checkpoints --checkpoint-every=10 "
      "--resume=auto");
  spec.options = train_options();
  return {spec, run};
}

}  // namespace everstep::launcher
