#include "launcher/worker/worker.h"

#include <fstream>
#include <memory>

#include <unistd.h>

#include "base/log_line.h"
#include "launcher/cli/host.h"
#include "launcher/job/run_directory.h"
#include "launcher/job/train_plan.h"
#include "launcher/worker/control_link.h"
#include "launcher/worker/crash_report.h"
#include "launcher/worker/run_trace.h"
#include "launcher/worker/runtime_directory.h"
#include "launcher/worker/stage_hooks.h"
#include "launcher/worker/worker_arguments.h"
#include "launcher/worker/worker_checkpoints.h"
#include "launcher/worker/worker_device.h"
#include "launcher/worker/worker_process.h"
#include "trainer/checkpoints/checkpoint_writer.h"
#include "trainer/socket/socket_connector.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

// A fixed set of workers ends at a window's end or not at all.
class AskedToStop final : public trainer::StopRequests {
 public:
  explicit AskedToStop(const ControlLink& link) : link_(link) {}

  trainer::WindowStop at_window_end() override {
    return link_.stop_requested() ? trainer::WindowStop::kSaveAndEnd : trainer::WindowStop::kNo;
  }
  bool start_round(std::int64_t, std::chrono::milliseconds) override { return true; }
  std::optional<std::int64_t> certain_round() override { return std::nullopt; }
  std::optional<std::int64_t> last_round() override { return std::nullopt; }

 private:
  const ControlLink& link_;
};

class WorkerProcess {
 public:
  WorkerProcess(WorkerIdentity identity, TrainRequest request, ControlLink& link)
      : identity_(std::move(identity)), request_(std::move(request)), link_(link), recorder_(kRecordedOps) {
    set_last_words({[this](const Error& error) { link_.send(error); }, &recorder_, std::to_string(identity_.rank)});
    set_crash_generation(identity_.generation);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() { set_last_words({}); }

  Result<Finished> run() {
    const auto plan = make_train_plan(request_);
    if (!plan) return plan.error();
    plan_ = *plan;
    const auto data = open_training_data(request_);
    if (!data) return data.error();
    EVERSTEP_TRY(open_checkpoints());
    if (!request_.emulation) trainer::prepare_torch(kTorchThreads);
    EVERSTEP_TRY(open_device());
    auto transport = connect();
    if (!transport) return transport.error();

    const MemoryMeter meter(device_);
    trainer::TrainOptions options = train_options_of(request_, plan_, identity_.lineage);
    options.generation = identity_.generation;
    if (checkpoints_) options.resume = checkpoints_->start();
    const auto links = device_.connect(
        **transport, {identity_.lineage, identity_.generation, identity_.rank, plan_.plan.depth, plan_.plan.width});
    if (!links) return links.error();
    const auto result = device_.train(options, **data, **transport, links->get(), hooks());
    if (!result) {
      log_recorder(recorder_);
      return result.error();
    }
    EVERSTEP_TRY((*transport)->close(options.peer_timeout));
    // A last checkpoint that failed (result->saved) is the supervisor's to tell: the training has ended well.
    return Finished{result->steps, result->last.skipped_in_all, meter.most()};
  }

 private:
  Status open_device() {
    auto device = WorkerDevice::open({request_.device, identity_.device_number},
                                     device_variables(request_.device, request_.transport, {}), runtime_directory());
    if (!device) return device.error();
    device_ = std::move(device).value();
    if (const auto& link = request_.emulated_link) device_.emulate_link(*link);
    return device_.open_transport(request_.transport, request_.transport);
  }

  Status open_checkpoints() {
    if (!request_.checkpoints) return {};
    auto opened = WorkerCheckpoints::open(request_, plan_, identity_, link_);
    if (!opened) return opened.error();
    checkpoints_ = std::move(opened).value();
    return {};
  }

  Result<std::unique_ptr<trainer::Transport>> connect() {
    trainer::SocketOptions options;  // all workers are on this host
    options.lineage = identity_.lineage;
    options.runtime_directory = runtime_directory();
    options.log = log_event;
    auto opened = trainer::listen_for_peers(options);
    if (!opened) return opened.error();
    connector_ = std::move(opened).value();
    link_.send(Hello{describe_setup(plan_.plan), connector_->address(), device_.provenance()});
    trainer::PeerRoster roster{identity_.lineage, identity_.generation, 0, identity_.rank, {}};
    for (const std::string& address : link_.wait_for_start().addresses) {
      // Nobody is replaced in a fixed set of workers, so a place is an id.
      roster.members.push_back({WorkerId{{identity_.lineage, roster.members.size()}}, address});
    }
    auto connected = connector_->connect(roster, request_.options.peer_timeout);
    if (!connected.connection) return connected.connection.error();
    return std::move(connected.connection->transport);
  }

  trainer::TrainHooks hooks() {
    trainer::TrainHooks hooks;
    hooks.now = monotonic_now;
    hooks.recorder = &recorder_;
    hooks.stops = &stops_;
    if (identity_.rank == 0) {
      hooks.on_step = [this](const trainer::StepReport& report) { link_.send(report); };
      hooks.on_validation = [this](std::int64_t step, double loss) { link_.send(Validation{step, loss}); };
    }
    if (!request_.trace.empty()) {
      trace_.open(RunDirectory{identity_.output}.worker_trace(identity_.rank));
      hooks.on_op = [this](const trainer::OpRecord& record) { trace_ << trace_line(record); };
    }
    if (checkpoints_) checkpoints_->add_hooks(hooks);
    add_stage_hooks(request_, plan_.plan, hooks);
    return hooks;
  }

  WorkerIdentity identity_;
  TrainRequest request_;
  ControlLink& link_;
  AskedToStop stops_{link_};
  trainer::FlightRecorder recorder_;
  TrainPlan plan_;
  WorkerDevice device_;
  std::unique_ptr<trainer::PeerConnector> connector_;
  std::ofstream trace_;
  std::unique_ptr<WorkerCheckpoints> checkpoints_;  // with --checkpoint-dir only
};

Result<Finished> work(const std::vector<std::string>& args, ControlLink& link) {
  auto invocation = read_worker_arguments(args);
  if (!invocation) return invocation.error();
  Outcome failure;
  TrainRequest request = read_train_request(invocation->config, host_memory_bytes(), failure);
  if (failure) return failure->error;
  log_event(LogLine("started")
                .add("worker", invocation->identity.rank)
                .add("pid", ::getpid())
                .add("kernels", trainer::cpu_capability())
                .text());
  try {
    return WorkerProcess(std::move(invocation->identity), std::move(request), link).run();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kUnavailable, "this worker ran out of memory",
                 "use more workers, a smaller --minibatch or --window, or --recompute"};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, exception.what(), "please report it"};
  }
}

}  // namespace

ExitCode run_worker(const std::vector<std::string>& args) {
  prepare_worker_process();
  die_with_parent();
  ControlLink link(ControlSocket(kControlDescriptor), [] { log_event(LogLine("supervisor_gone").text()); });
  const auto finished = work(args, link);
  if (!finished) {
    log_event(
        LogLine("failed").add("code", to_string(finished.error().code)).add("reason", finished.error().line()).text());
    link.send(finished.error());
    return exit_code_of(finished.error().code);
  }
  log_event(LogLine("finished").add("steps", finished->steps).add("peak_bytes", finished->peak_bytes).text());
  link.send(*finished);
  return ExitCode::kDone;
}

}  // namespace everstep::launcher
