#include "launcher/worker/elastic_worker.h"

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "base/log_line.h"
#include "elastic/sealed_store.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/cli/host.h"
#include "launcher/job/checkpoint_session.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/patient_store.h"
#include "launcher/job/store_connection.h"
#include "launcher/worker/control_link.h"
#include "launcher/worker/leave_signals.h"
#include "launcher/worker/member_loop.h"
#include "launcher/worker/outage_clock.h"
#include "launcher/worker/reach.h"
#include "launcher/worker/runtime_directory.h"
#include "launcher/worker/stage_hooks.h"
#include "launcher/worker/worker_device.h"
#include "launcher/worker/worker_order.h"
#include "launcher/worker/worker_process.h"
#include "launcher/worker/worker_wire.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

// Who is told that the worker is to leave: the incarnation of the moment, and those that follow.
class LeaveDesk {
 public:
  void post(const LeaveNotice& notice) {
    const std::scoped_lock lock(mutex_);
    notice_ = notice;
    if (loop_ != nullptr) loop_->ask_to_leave(notice);
  }

  // Between incarnations there is nobody.
  void serve(MemberLoop* loop) {
    const std::scoped_lock lock(mutex_);
    loop_ = loop;
    if (loop != nullptr && notice_) loop->ask_to_leave(*notice_);
  }

  bool is_asked() const {
    const std::scoped_lock lock(mutex_);
    return notice_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<LeaveNotice> notice_;
  MemberLoop* loop_ = nullptr;
};

class ElasticWorker {
 public:
  ElasticWorker(WorkerOrder order, LeaveSignals& signals, ControlLink* link)
      : order_(std::move(order)),
        signals_(signals),
        link_(link),
        keys_(order_.job),
        secret_(JobSecret::of(order_.secret)),
        recorder_(kRecordedOps) {
    set_last_words({[this](const Error& error) { tell(error); }, &recorder_, name()});
  }
  ElasticWorker(const ElasticWorker&) = delete;
  ElasticWorker& operator=(const ElasticWorker&) = delete;
  ~ElasticWorker() {
    signals_.stop_listening();
    set_last_words({});
  }

  // Everything that takes time happens before the worker is a member: the running job does not notice.
  Status prepare() {
    auto kv = connect_store(order_.etcd);
    if (!kv) return kv.error();
    kv_ = std::make_unique<CountingStore>(std::move(kv).value(), keys_, [this](StoreCall call) {
      metrics_.change([call](WorkerMetrics& metrics) { ++metrics.calls(call); });
    });
    auto job = read_job(*kv_, order_);
    if (!job) return job.error();
    job_ = std::move(job).value();
    kv_ = std::make_unique<elastic::SealedStore>(std::move(kv_), job_->found.seal);
    watch_.emplace(boot_now, std::chrono::nanoseconds(job_->membership.hang_limit).count());
    outage_.emplace(job_->membership);
    EVERSTEP_TRY(open_checkpoints());
    auto data = open_training_data(job_->request);
    if (!data) return data.error();
    data_ = std::move(data).value();
    if (!job_->request.emulation) trainer::prepare_torch(kTorchThreads);
    auto device = WorkerDevice::open(
        job_->device, device_variables(job_->device.kind, job_->transport, order_.host.wire), runtime_directory());
    if (!device) return device.error();
    device_ = std::move(device).value();
    if (const auto& link = job_->request.emulated_link) device_.emulate_link(*link);
    EVERSTEP_TRY(device_.open_transport(job_->request.transport, job_->transport));
    log_event(LogLine("device").add("device", device_.text()).add("transport", device_.transport_text()).text());
    EVERSTEP_TRY(check_address());
    EVERSTEP_TRY(listen());
    const trainer::TrainOptions& options = job_->request.options;
    progress_.emplace(options.model.tokens_per_minibatch() * job_->request.plan.window);
    curve_ = make_curve(job_->request, job_->found.spec.lineage);
    return serve();
  }

  Result<Finished> run() {
    const std::int64_t before = resident_bytes();
    reset_peak_resident_bytes();
    WorkerParts parts{*kv_,
                      *job_,
                      keys_,
                      high_water_,
                      *connector_,
                      *data_,
                      *checkpoints_,
                      *watch_,
                      recorder_,
                      metrics_,
                      *progress_,
                      *curve_,
                      *outage_,
                      name(),
                      host_of(order_),
                      [this](const FromWorker& message) { tell(message); },
                      [this](const std::string& event) { note(event); },
                      device_,
                      order_.slowdown};
    while (true) {
      auto loop = begin(parts);
      if (!loop) return loop.error();
      desk_.serve(loop->get());
      const MemberLoop::End end = (*loop)->run();
      desk_.serve(nullptr);
      loop->reset();
      if (!end.rejoin_after) {
        if (end.error) return *end.error;
        const trainer::StepReport last = progress_->now().last;
        return Finished{last.step, last.skipped_in_all, peak_resident_bytes() - before};
      }
      if (desk_.is_asked()) return Error{ErrorCode::kCancelled, "left as asked", ""};
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<Tick>(0, *end.rejoin_after - boot_now())));
    }
  }

 private:
  std::string name() const {
    return order_.name.empty() ? host_name() + "-" + std::to_string(::getpid()) : order_.name;
  }

  // Peers that cannot call this worker, or the other way round, would find out one after the other.
  Status check_address() {
    const Reach self = reach_of(order_);
    EVERSTEP_TRY(check_reach(self, *kv_, keys_, job_->membership.lease_ttl));
    if (const auto warning = reach_warning(self)) note(LogLine("unreachable_address").add("warning", *warning).text());
    return {};
  }

  // A worker that was part of the job waits for an etcd that is away, up to the limit; one that never was says so and
  // ends.
  Result<std::unique_ptr<MemberLoop>> begin(WorkerParts& parts) {
    constexpr std::chrono::milliseconds kPause{500};
    while (true) {
      parts.returns = was_member_;
      auto loop = MemberLoop::begin(parts);
      const bool may_come_back = !loop && is_silence(loop.error());
      if (!may_come_back || !was_member_ || desk_.is_asked()) {
        was_member_ = true;
        outage_->answered();
        return loop;
      }
      outage_->failed(boot_now());
      if (outage_->is_too_long()) return outage_->error();
      log_event(LogLine("waiting_for_etcd").add("reason", loop.error().line()).text());
      std::this_thread::sleep_for(kPause);
    }
  }

  // A directory of the same name on another file system would swallow this worker's part of every checkpoint.
  Status open_checkpoints() {
    const StoreLocation& location = job_->request.checkpoints->store;
    auto store = open_checkpoint_store(location, StoreAccess::kExisting);
    if (!store && store.error().code != ErrorCode::kNotFound) return store.error();
    const std::string wanted = storage::lineage_directory(job_->found.spec.lineage);
    if (!store || !(*store)->files().files.list(wanted)) {
      return not_found("the job's checkpoints are not in " + location.path(),
                       "all workers need one file system for them; --checkpoint-dir=DIR says where this host has it");
    }
    checkpoints_ = std::move(store).value();
    return {};
  }

  Status listen() {
    auto connector =
        listen_for_workers(order_.host.wire, secret_, {job_->found.spec.lineage, runtime_directory(), log_event});
    if (!connector) return connector.error();
    connector_ = std::move(connector).value();
    return {};
  }

  // Metrics, and the ways to be told to leave.
  Status serve() {
    if (!order_.host.metrics.empty()) {
      auto server = serve_metrics(order_.host.metrics, metrics_, {order_.job, name()});
      if (!server) return server.error();
      server_ = std::move(server).value();
    }
    const auto post = [this](const LeaveNotice& notice) {
      log_event(LogLine("leaving").add("reason", notice.reason).add("within_ms", notice.within_ms).text());
      desk_.post(notice);
    };
    signals_.listen(post);
    if (order_.host.notice.empty()) return {};
    auto source = make_notice_source(order_.host.notice, order_.host.notice_url);
    if (!source) return source.error();
    notices_ = std::make_unique<NoticeWatch>(
        std::move(source).value(),
        NoticeCallbacks{
            post, [](const Error& error) { log_event(LogLine("no_notices").add("reason", error.line()).text()); }});
    return {};
  }

  void tell(const FromWorker& message) const {
    if (link_ != nullptr) link_->send(message);
  }

  void note(const std::string& event) const {
    log_event(event);
    tell(WorkerNote{event});
  }

  const WorkerOrder order_;
  LeaveSignals& signals_;
  ControlLink* const link_;
  const elastic::Keys keys_;
  const JobSecret secret_;
  trainer::FlightRecorder recorder_;
  MetricsBoard metrics_;
  LeaveDesk desk_;
  elastic::HighWater high_water_;
  bool was_member_ = false;
  std::unique_ptr<elastic::KvStore> kv_;
  std::optional<JoinedJob> job_;
  WorkerDevice device_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  std::unique_ptr<trainer::DataSource> data_;
  std::unique_ptr<trainer::PeerConnector> connector_;
  std::optional<ComputeWatch> watch_;
  std::optional<RunProgress> progress_;
  std::unique_ptr<Curve> curve_;
  std::optional<OutageClock> outage_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<NoticeWatch> notices_;
};

Result<Finished> work(WorkerOrder order, LeaveSignals& signals, ControlLink* link) {
  log_event(
      LogLine("started").add("job", order.job).add("pid", ::getpid()).add("kernels", trainer::cpu_capability()).text());
  try {
    ElasticWorker worker(std::move(order), signals, link);
    EVERSTEP_TRY(worker.prepare());
    return worker.run();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kUnavailable, "this worker ran out of memory",
                 "use more workers, a smaller --minibatch or --window, or --recompute"};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, exception.what(), "please report it"};
  }
}

}  // namespace

ExitCode run_elastic_worker(const std::vector<std::string>& args) {
  prepare_worker_process();
  LeaveSignals signals;
  auto order = read_worker_order(args);
  if (!order) {
    log_event(LogLine("failed").add("reason", order.error().line()).text());
    return ExitCode::kUsage;
  }
  std::optional<ControlLink> link;
  if (order->supervised) {
    die_with_parent();
    link.emplace(ControlSocket(kControlDescriptor), [] { log_event(LogLine("supervisor_gone").text()); });
  }
  const auto finished = work(std::move(order).value(), signals, link ? &*link : nullptr);
  if (!finished) {
    const Error& error = finished.error();
    const bool has_left = error.code == ErrorCode::kCancelled;  // as it was asked to
    LogLine event(has_left ? "left" : "failed");
    if (!has_left) event.add("code", to_string(error.code));
    log_event(event.add("reason", error.line()).text());
    if (link) link->send(error);
    return exit_code_of(error.code);
  }
  log_event(LogLine("finished").add("steps", finished->steps).add("peak_bytes", finished->peak_bytes).text());
  if (link) link->send(*finished);
  return ExitCode::kDone;
}

}  // namespace everstep::launcher
