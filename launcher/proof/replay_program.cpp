#include "launcher/proof/replay_program.h"

#include <memory>
#include <utility>

#include "base/log_line.h"
#include "launcher/cli/command_program.h"
#include "launcher/job/job_directory.h"
#include "launcher/proof/replay.h"
#include "launcher/proof/replay_spec.h"
#include "launcher/worker/stage_hooks.h"
#include "launcher/worker/worker_device.h"
#include "launcher/worker/worker_process.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

// As `everstep train` chooses, of the devices of this host.
Outcome open_device(const Config& config, Streams& streams, WorkerDevice& device) {
  DeviceName name;
  if (auto failure = read_device_name(config, name)) return failure;
  const bool any = name.kind == kAnyDevice;
  if (any) name = DeviceName{"cuda"};
  auto opened = WorkerDevice::open(name, device_variables(name.kind, kHostTransport, {}));
  if (!opened && !any) return config.blame("device", opened.error());
  LogLine chosen("device_chosen");
  if (opened) {
    device = std::move(opened).value();
    chosen.add("device", device.text());
  } else {
    chosen.add("device", kHostDevice).add("reason", opened.error().line());
  }
  if (any) print_event(streams, chosen.text());
  return {};
}

std::optional<std::int64_t> read_step(const Config& config, Values& values, std::string_view name) {
  if (!config.is_set(name)) return std::nullopt;
  return values.integer(name, {.min = 0, .max = 1'000'000'000});
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  ReplayRequest request;
  request.to_step = read_step(config, values, "to");
  request.from_step = read_step(config, values, "from");
  if (config.is_set("data")) request.data = values.path("data");
  OpenedJob job;
  if (auto failure = open_job_directory(config, values, job)) return failure;
  trainer::prepare_torch(kTorchThreads);  // as every worker has
  WorkerDevice device;
  if (auto failure = open_device(config, streams, device)) return failure;
  request.provenance = device.provenance();
  const auto memory = device.make_memory();
  const auto hooks_of = [&memory](const TrainRequest& asked) {
    trainer::TrainHooks hooks;
    add_stage_hooks(asked, {}, hooks);
    hooks.device = memory.get();
    return hooks;
  };
  const auto report = replay(*job.store, request, hooks_of, streams);
  if (!report && report.error().code == ErrorCode::kNotFound) return Failure(report.error(), ExitCode::kUsage);
  if (!report) return report.error();
  if (json) streams.out << to_text(replay_json(*report)) << "\n";
  if (report->difference) return Error{ErrorCode::kDataLoss, "replay: " + replay_text(*report), report->hint};
  if (!json) streams.out << "replay: " << replay_text(*report) << "\n";
  return {};
}

}  // namespace

ExitCode run_replay_program(const std::vector<std::string>& args) {
  std::vector<std::string> all{replay_spec().name};
  all.insert(all.end(), args.begin(), args.end());
  return run_as_program({{replay_spec(), run}}, std::move(all));
}

}  // namespace everstep::launcher
