#include "launcher/train/prepared_run.h"

#include <ctime>
#include <utility>

#include "base/log_line.h"
#include "launcher/files.h"
#include "launcher/train/host.h"
#include "launcher/train/run_summary.h"

namespace everstep::launcher {
namespace {

Outcome check_pipelines(const Config& config, const PreparedRun& run) {
  const scheduler::Plan& plan = run.plan.plan;
  if (run.request.pipelines.value_or(plan.pipelines) == plan.pipelines) return {};
  return config.reject("pipelines", "the plan is " + describe(plan.kind, plan.depth, plan.pipelines, plan.width),
                       "amdp has half as many pipelines as its depth, two-directions two, the others one");
}

// A run that goes on has the settings of its checkpoint where it has none of its own.
Outcome open_checkpoints(const Config& config, PreparedRun& run, Streams& streams) {
  Outcome failure = open_session(config, run.request, run.plan, run.lineage, streams, run.checkpoints.emplace());
  if (failure) return failure;
  run.lineage = run.checkpoints->lineage;
  run.config = run.checkpoints->config;
  run.request = read_train_request(run.config, host_memory_bytes(), failure);
  return failure;
}

}  // namespace

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

Outcome check_run(const Config& config, PreparedRun& run) {
  Outcome failure;
  run.config = config;
  run.request = read_train_request(config, host_memory_bytes(), failure);
  if (failure) return failure;
  auto plan = make_train_plan(run.request);
  if (!plan) return plan.error();
  run.plan = *std::move(plan);
  failure = check_pipelines(config, run);
  return failure ? failure : check_data(config, run.request);
}

Outcome prepare_run(const Config& config, std::uint64_t lineage, Streams& streams, PreparedRun& run) {
  if (Outcome failure = check_run(config, run)) return failure;
  run.lineage = lineage;
  return run.request.checkpoints ? open_checkpoints(config, run, streams) : Outcome();
}

Outcome make_directory(PreparedRun& run) {
  const bool is_named = !run.request.output.empty();
  const bool goes_on = run.request.checkpoints && run.request.checkpoints->resume != ResumeWish{};
  auto directory =
      make_run_directory(is_named ? run.request.output : default_run_path(std::time(nullptr), run.lineage), goes_on);
  if (!directory) return run.config.blame("output", directory.error());
  run.directory = *std::move(directory);
  auto lock = RunLock::take(run.directory.path);
  if (!lock) return run.config.blame("output", lock.error());
  run.lock = std::move(lock).value();
  if (const Status kept = write_file(run.directory.config(), print_config(run.config)); !kept) return kept.error();
  return {};
}

void log_plan(const PreparedRun& run, Streams& streams) {
  const scheduler::Plan& plan = run.plan.plan;
  print_event(streams, LogLine("plan_chosen")
                           .add("plan", describe(plan.kind, plan.depth, plan.pipelines, plan.width))
                           .add("window", plan.window)
                           .add("workers", run.workers())
                           .add("reason", run.plan.reason)
                           .text());
  const int idle = run.request.workers - run.workers();
  if (idle > 0) print_event(streams, LogLine("workers_not_needed").add("workers", idle).text());
}

void tell_idle_run(const PreparedRun& run, Streams& streams) {
  print_event(streams,
              LogLine("nothing_to_do").add("step", run.steps_before()).add("steps", run.request.options.steps).text());
  const storage::Manifest& last = run.checkpoints->start->manifest;
  streams.out << (run.request.json ? idle_summary_json(last) + "\n" : idle_summary_text(last));
}

}  // namespace everstep::launcher
