#include "launcher/supervise/prepared_run.h"

#include <ctime>
#include <filesystem>
#include <utility>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/supervise/run_summary.h"

namespace everstep::launcher {
namespace {

// A run that goes on has the settings of its checkpoint where it has none of its own.
Outcome open_checkpoints(const Config& config, PreparedRun& run, Streams& streams) {
  Outcome failure = open_session(config, run.request, run.plan, run.lineage, streams, run.checkpoints.emplace());
  if (failure) return failure;
  run.lineage = run.checkpoints->lineage;
  run.config = run.checkpoints->config;
  run.request = read_train_request(run.config, host_memory_bytes(), failure);
  return failure;
}

// The head's copy of the token embedding is no other parameter.
std::int64_t count_parameters(const trainer::ModelConfig& model) {
  std::int64_t count = 0;
  for (int block = 0; block < model.blocks(); ++block) {
    for (const trainer::ParameterSpec& parameter : parameters_of(model, block)) {
      if (block == 0 || !parameter.tied) count += parameter.elements();
    }
  }
  return count;
}

// A convenience: whoever cannot have it still has the file.
void link_curve(const PreparedRun& run) {
  if (!run.request.checkpoints) return;
  const std::string curve = curve_path(run.request.checkpoints->store.path(), run.lineage);
  std::error_code ignored;
  const auto target = std::filesystem::proximate(curve, run.directory.path, ignored);
  std::filesystem::create_symlink(target, run.directory.curve(), ignored);
}

// event=setup data=corpus.txt format="text, every byte a token" tokens=1000 ids=65 largest_id=122 vocabulary=256
// epochs=0.77 parameters=6000 plan="amdp D=4 P=2 W=1" predicted_mib=99
std::string setup_event(const PreparedRun& run) {
  const trainer::TrainOptions& options = run.request.options;
  const scheduler::Plan& plan = run.plan.plan;
  LogLine event("setup");
  if (run.data) {
    const std::int64_t samples = (options.steps - run.steps_before()) * plan.window * options.model.minibatch;
    const double epochs = static_cast<double>(samples) / static_cast<double>(run.data->training_samples);
    event.add("data", run.request.data->path).add("format", run.data->format).add("tokens", run.data->tokens);
    event.add("ids", run.data->ids.used).add("largest_id", run.data->ids.largest);
    event.add("vocabulary", options.model.shape.vocabulary).add("epochs", fixed_text(epochs, 2));
  }
  event.add("parameters", count_parameters(options.model));
  event.add("plan", describe(plan.kind, plan.depth, plan.pipelines, plan.width));
  return event.add("predicted_mib", (run.plan.predicted_bytes + run.plan.copy_bytes) >> 20).text();
}

}  // namespace

// Workers open the data for themselves; here it is only to find what is wrong with it before they start.
Outcome check_data(PreparedRun& run) {
  const TrainRequest& request = run.request;
  if (!request.data) return {};
  auto facts = look_at_data(*request.data, request.options.model);
  if (!facts) return run.config.blame("data", facts.error());
  run.data = std::move(facts).value();
  const auto data = open_data(*request.data, request.options.model);
  if (!data) return run.config.blame("data", data.error());
  if (request.options.evaluate_every > 0 && (*data)->validation_minibatches() == 0) {
    return run.config.reject("eval-every", "there is not one minibatch of data to validate on",
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
  return check_data(run);
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
  link_curve(run);
  if (const Status kept = write_file(run.directory.config(), print_config(run.config)); !kept) return kept.error();
  return {};
}

void log_plan(const PreparedRun& run, Streams& streams) {
  const scheduler::Plan& plan = run.plan.plan;
  print_event(streams, setup_event(run));
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
