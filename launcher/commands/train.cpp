#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/output_file.h"
#include "launcher/commands/commands.h"
#include "launcher/job/elastic_options.h"
#include "launcher/job/lineage.h"
#include "launcher/job/resume_command.h"
#include "launcher/supervise/elastic_train.h"
#include "launcher/supervise/local_devices.h"
#include "launcher/supervise/prepared_run.h"
#include "launcher/supervise/run_end.h"
#include "launcher/supervise/run_reporter.h"
#include "launcher/supervise/run_summary.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/worker/run_trace.h"
#include "launcher/worker/worker_arguments.h"
#include "trainer/checkpoints/checkpoint_committer.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestWorkerTrace = std::size_t{1} << 30;

WorkerIdentity identity_of(const PreparedRun& job, int rank, const LocalDevices& devices = {}) {
  WorkerIdentity identity{rank, job.lineage, job.directory.path};
  if (!devices.numbers.empty()) identity.device_number = devices.numbers.at(static_cast<std::size_t>(rank));
  if (job.checkpoints) {
    identity.generation = job.checkpoints->generation;
    if (job.checkpoints->start) identity.start_from = job.checkpoints->start->head.manifest;
  }
  return identity;
}

Supervision supervision_of(const PreparedRun& job, const LocalDevices& devices, RunReporter& reporter, Curve* curve) {
  Supervision supervision;
  for (int rank = 0; rank < job.workers(); ++rank) {
    supervision.workers.push_back({sibling_program("everstep-worker"),
                                   worker_arguments(job.config, identity_of(job, rank, devices)),
                                   job.directory.worker_log(rank)});
  }
  supervision.setup = describe_setup(job.plan.plan);
  supervision.timeout = job.request.options.peer_timeout;
  supervision.on_start = [&reporter] { reporter.on_start(monotonic_now()); };
  const Generation generation = identity_of(job, 0).generation;
  supervision.on_step = [&reporter, curve, generation](const trainer::StepReport& report) {
    reporter.on_step(report);
    if (curve != nullptr) curve->note(generation, report);
  };
  supervision.on_validation = [&reporter, curve](const Validation& validation) {
    reporter.on_validation(validation.loss);
    if (curve != nullptr) curve->note_validation(validation.step, validation.loss);
  };
  supervision.on_event = [&reporter](const std::string& event) { reporter.note(event); };
  supervision.on_stop_request = [&reporter](int signal) { reporter.note(stopping_event(signal)); };
  return supervision;
}

RunSummary summary_of(const PreparedRun& job, const RunReporter& reporter, const std::vector<Finished>& finished) {
  RunSummary summary;
  summary.steps = finished.front().steps;
  if (reporter.last()) {
    summary.loss = reporter.last()->loss;
    summary.skipped = reporter.last()->skipped_in_all;
  }
  summary.validation_loss = reporter.validation_loss();
  summary.rate = reporter.statistics().steady();
  summary.seconds = reporter.statistics().seconds();
  for (const Finished& worker : finished) summary.peak_bytes = std::max(summary.peak_bytes, worker.peak_bytes);
  summary.predicted_bytes = job.plan.predicted_bytes;
  summary.plan = job.plan.plan;
  summary.output = job.directory.path;
  return summary;
}

Outcome write_trace(const PreparedRun& job, Streams& streams) {
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

std::unique_ptr<trainer::CheckpointCommitter> make_committer(const PreparedRun& job, Curve* curve) {
  if (curve == nullptr) return nullptr;
  return std::make_unique<trainer::CheckpointCommitter>(facts_of(*job.checkpoints, job.request, job.plan),
                                                        job.workers(), job.request.checkpoints->retention,
                                                        job.checkpoints->store->ports(), job.checkpoints->start, curve);
}

// The run is not over before its last checkpoint is.
void await(trainer::CheckpointCommitter* committer, RunReporter& reporter) {
  if (committer == nullptr) return;
  committer->finish();
  for (const trainer::CheckpointCommitter::News& news : committer->take_news()) {
    if (!news.event.empty()) reporter.note(news.event);
  }
}

Outcome failure_of_last_checkpoint(const trainer::CheckpointCommitter* committer) {
  if (committer == nullptr || committer->last()) return {};
  return last_checkpoint_lost(committer->last().error());
}

// Workers that neither come nor go need none of these.
Outcome refuse_elastic_options(const Config& config) {
  for (const OptionSpec& option : elastic_options()) {
    if (option.name == "etcd" || config.setting(option.name).source != Source::kFlag) continue;
    return config.reject(option.name, "has no meaning with --etcd=none", "leave one of the two out");
  }
  return {};
}

// From the first worker to the last. Fills `printed` with the summary, if there is one.
Outcome run_fixed(PreparedRun& job, const LocalDevices& devices, std::string& printed, Streams& streams) {
  const trainer::TrainOptions& options = job.request.options;
  log_plan(job, streams);
  if (job.checkpoints && job.checkpoints->start) {
    print_event(streams, resumed_event(*job.checkpoints, job.plan));
  }

  RunReporter reporter(
      {options.steps, options.evaluate_every, options.model.tokens_per_minibatch() * job.plan.plan.window,
       job.directory.metrics(), options.accumulation},
      streams);
  const auto curve = job.checkpoints ? make_curve(job.request, job.lineage) : nullptr;
  const auto committer = make_committer(job, curve.get());
  Supervision supervision = supervision_of(job, devices, reporter, curve.get());
  supervision.committer = committer.get();
  const SupervisionEnd end = supervise(supervision);
  await(committer.get(), reporter);
  reporter.on_end();
  if (end.failure) return end.failure;

  Outcome failure;
  if (!job.request.trace.empty()) failure = write_trace(job, streams);
  RunSummary summary = summary_of(job, reporter, end.finished);
  if (committer) summary.checkpoints = committer->counts();
  const bool has_saved = summary.checkpoints && summary.checkpoints->last_step;
  if (summary.steps < options.steps && has_saved) summary.resume = resume_command(job.config);
  printed = summary_text(summary);
  streams.out << (job.request.json ? summary_json(summary) + "\n" : printed);
  if (!failure) failure = failure_of_last_checkpoint(committer.get());
  if (failure || summary.steps == options.steps) return failure;
  return stopped_early(summary.steps, options.steps, end.stop_signal);
}

Outcome train_fixed(const Config& given, Streams& streams) {
  Outcome failure = refuse_elastic_options(given);
  if (failure) return failure;
  Config config = given;
  LocalDevices devices;
  failure = find_devices(config, ask_worker_program, streams, devices);
  if (failure) return failure;
  PreparedRun job;
  failure = prepare_run(config, random_lineage(), streams, job);
  if (failure) return failure;
  if (job.steps_before() >= job.request.options.steps) {
    tell_idle_run(job, streams);
    return {};
  }
  failure = make_directory(job);
  if (failure) return failure;
  std::string summary;
  failure = run_fixed(job, devices, summary, streams);
  return leave_word(job.directory, job.config, summary, std::move(failure));
}

bool is_fixed(const Config& config) { return config.setting("etcd").text == "none"; }

Outcome run(const Config& config, Streams& streams) {
  return is_fixed(config) ? train_fixed(config, streams) : train_elastic(config, streams);
}

Outcome check(const Config& config) {
  if (!is_fixed(config)) return check_elastic(config);
  Outcome failure = refuse_elastic_options(config);
  Config known = config;
  if (!failure) failure = check_device(known);
  PreparedRun run;
  return failure ? failure : check_run(known, run);
}

}  // namespace

Command train_command() {
  CommandSpec spec;
  spec.name = "train";
  spec.summary = "Train a model with worker processes on this host";
  spec.text =
      "Starts an etcd (or uses the one of --etcd), creates a job there and one process per worker, and stays until the "
      "job is finished; then it prints the result. Workers may come and go meanwhile: everstep worker, scale and "
      "drain, "
      "signals, notices of the cloud, deaths. The others go on under a new plan, made as everstep plan does. Who "
      "leaves in order hands its state over. After a death the others put its state together from the copies that "
      "they have in memory (--redundancy), and run the window at hand again, at worst also the one before; only if "
      "more die at "
      "once than there are copies do they go back to the newest checkpoint. If the etcd of --etcd has the job already, "
      "these are more workers for it. With --etcd=none there is no etcd, and a worker that dies or is silent for too "
      "long ends the run.\n"
      "Ctrl-C, SIGTERM or everstep stop saves and ends the job after the current window (exit code 75), a second "
      "signal ends the local workers at once. However it ends before its last step, it prints the command that goes on "
      "from the newest checkpoint, and everstep status --dir tells it later.\n"
      "The output directory has metrics.jsonl with an object per update, curve.jsonl (a link to the job's curve beside "
      "its checkpoints: each committed update once, whoever trained it), config.txt with the configuration in force, "
      "a log per worker, job.conf with the address of the job while it runs, and end.json with how it ended. Lines of "
      "logs begin with the time (UTC). Speed and busy share in the result leave out the first tenth of the updates (at "
      "least one, at most ten) and the last one, where the pipeline fills and drains.\n"
      "The whole state is saved while training goes on, at the end and when it is stopped, in --checkpoint-dir or, "
      "with an etcd, in the output directory, and --resume goes on from there, also with another number of workers or "
      "another plan; from a checkpoint that was taken in the middle of a run, under the same plan, as if nothing had "
      "happened. A save that fails is reported and tried again later. A step that is done again stands in "
      "metrics.jsonl twice.\n"
      "Exit codes: 0 all steps are made, 64 and 78 options or data that cannot work, 65 damaged checkpoints, 69 etcd "
      "or a worker that was lost, 75 stopped on request.";
  spec.examples = {"everstep train --workers=4 --data=examples/corpus.txt",
                   "everstep train --workers=2 --data=corpus.bin --model=gpt2-small --window=32 --steps=1000 --lr=6e-4 "
                   "--eval-every=100 --output=runs/first",
                   "everstep train --workers=8 --emulate=10:10:10 --depth=8 --window=32 --json"};
  spec.examples.emplace_back(
      "everstep train --workers=4 --data=examples/corpus.txt --checkpoint-dir=checkpoints --checkpoint-every=10 "
      "--resume=auto");
  spec.options = train_options();
  return {spec, run, {}, check, explain_device};
}

}  // namespace everstep::launcher
