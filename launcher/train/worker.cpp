#include "launcher/train/worker.h"

#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>

#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/train/checkpoint_writer.h"
#include "launcher/train/control_link.h"
#include "launcher/train/host.h"
#include "launcher/train/run_directory.h"
#include "launcher/train/run_trace.h"
#include "launcher/train/train_plan.h"
#include "launcher/train/worker_arguments.h"
#include "launcher/train/worker_checkpoints.h"
#include "launcher/train/worker_group.h"
#include "trainer/emulated/emulated_stage.h"
#include "trainer/torch/torch_stage.h"
#include "trainer/ucx/ucx_transport.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kRecordedOps = 256;
constexpr int kTorchThreads = 1;
constexpr int kLargestKeptBlock = 32 << 20;

// One write, so that lines of other threads do not fall into it.
void log_event(const std::string& line) {
  std::cerr << "t=" + fixed_text(to_seconds(monotonic_now()), 3) + " " + line + "\n" << std::flush;
}

void log_recorder(const trainer::FlightRecorder& recorder) {
  log_event(LogLine("last_ops").text() + "\n" + recorder.dump(monotonic_now()));
}

// What a failed check needs to know: it ends the process and takes no argument.
struct LastWords {
  const ControlLink* link = nullptr;
  const trainer::FlightRecorder* recorder = nullptr;
};
LastWords last_words;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void on_check_failure(std::string_view message) {
  if (last_words.recorder != nullptr) log_recorder(*last_words.recorder);
  if (last_words.link != nullptr)
    last_words.link->send(Error{ErrorCode::kInternal, std::string(message), "please report it"});
}

class WorkerProcess {
 public:
  WorkerProcess(WorkerIdentity identity, TrainRequest request, ControlLink& link)
      : identity_(std::move(identity)), request_(std::move(request)), link_(link), recorder_(kRecordedOps) {
    last_words = {&link_, &recorder_};
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() { last_words = {}; }

  Result<Finished> run() {
    const auto plan = make_train_plan(request_);
    if (!plan) return plan.error();
    plan_ = *plan;
    const auto data = open();
    if (!data) return data.error();
    EVERSTEP_TRY(open_checkpoints());
    if (!request_.emulation) trainer::prepare_torch(kTorchThreads);
    auto transport = connect();
    if (!transport) return transport.error();

    const std::int64_t before = resident_bytes();
    reset_peak_resident_bytes();
    trainer::TrainOptions options = train_options_of(request_, plan_, identity_.lineage);
    options.generation = identity_.generation;
    if (checkpoints_) options.resume = checkpoints_->start();
    const auto result = train(options, **data, **transport, hooks());
    if (!result) {
      log_recorder(recorder_);
      return result.error();
    }
    EVERSTEP_TRY((*transport)->close(options.peer_timeout));
    // A last checkpoint that failed (result->saved) is the supervisor's to tell: the training has ended well.
    return Finished{result->steps, result->skipped, peak_resident_bytes() - before};
  }

 private:
  Result<std::unique_ptr<trainer::DataSource>> open() const {
    if (!request_.data) return trainer::make_emulated_data();
    return open_data(*request_.data, request_.options.model);
  }

  Status open_checkpoints() {
    if (!request_.checkpoints) return {};
    auto opened = WorkerCheckpoints::open(request_, plan_, identity_, link_);
    if (!opened) return opened.error();
    checkpoints_ = std::move(opened).value();
    return {};
  }

  Result<std::unique_ptr<trainer::Transport>> connect() {
    trainer::UcxOptions options;
    options.bind = request_.bind;
    options.port = static_cast<std::uint16_t>(request_.port == 0 ? 0 : request_.port + identity_.rank);
    options.worker = identity_.rank;
    options.lineage = identity_.lineage;
    options.log = log_event;
    const auto listener = trainer::UcxListener::listen(options);
    if (!listener) return listener.error();
    link_.send(Hello{describe_setup(plan_.plan),
                     (*listener)->address(),
                     {{"kernels", trainer::cpu_capability()}, {"libtorch", trainer::torch_version()}}});
    return (*listener)->connect(link_.wait_for_start().addresses, request_.options.peer_timeout);
  }

  trainer::TrainHooks hooks() {
    trainer::TrainHooks hooks;
    hooks.now = monotonic_now;
    hooks.recorder = &recorder_;
    hooks.stop_requested = [this] { return link_.stop_requested(); };
    if (identity_.rank == 0) {
      hooks.on_step = [this](const trainer::StepReport& report) { link_.send(report); };
      hooks.on_validation = [this](std::int64_t step, double loss) { link_.send(Validation{step, loss}); };
    }
    if (!request_.trace.empty()) {
      trace_.open(RunDirectory{identity_.output}.worker_trace(identity_.rank));
      hooks.on_op = [this](const trainer::OpRecord& record) { trace_ << trace_line(record); };
    }
    if (checkpoints_) checkpoints_->add_hooks(hooks);
    request_.emulation ? emulate(hooks) : compute(hooks);
    return hooks;
  }

  void emulate(trainer::TrainHooks& hooks) const {
    const trainer::EmulatedTimes times = emulated_times(*request_.emulation, plan_.plan);
    hooks.make_stage = [times](const trainer::StageRequest& stage) { return make_emulated_stage(stage, times); };
  }

  void compute(trainer::TrainHooks& hooks) const {
    hooks.make_stage = trainer::make_torch_stage;
    hooks.initialise_weights = [this](const trainer::StageLayout& layout, const trainer::Buffer& weights) {
      trainer::initialise_weights(request_.options.model, layout, weights);
    };
    hooks.initialise_master = [this](const trainer::StageLayout& layout, const trainer::Buffer& master) {
      trainer::initialise_master(request_.options.model, layout, master);
    };
  }

  WorkerIdentity identity_;
  TrainRequest request_;
  ControlLink& link_;
  trainer::FlightRecorder recorder_;
  TrainPlan plan_;
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
  // Two ways not to outlive the supervisor: the kernel's, and the end of the control socket.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A sleep is to end when it was told to, not when it suits the kernel.
  ::prctl(PR_SET_TIMERSLACK, 1);
  // Buffers of messages come and go with every op: fresh pages for each would cost as much as copying them.
  ::mallopt(M_MMAP_THRESHOLD, kLargestKeptBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestKeptBlock);
  ::signal(SIGPIPE, SIG_IGN);
  set_check_failure_hook(on_check_failure);
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
