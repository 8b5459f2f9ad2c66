#include "launcher/rehearse/trace/trace_job.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "launcher/job/elastic_defaults.h"
#include "launcher/job/job_setup.h"
#include "launcher/job/lineage.h"
#include "launcher/job/store_connection.h"
#include "launcher/status/job_address.h"
#include "launcher/supervise/elastic_supervisor.h"
#include "launcher/supervise/job_requests.h"
#include "launcher/supervise/local_workers.h"

namespace everstep::launcher {
namespace {

std::string etcd_data(const RunDirectory& directory) { return directory.path + "/etcd"; }

std::string job_name(const Config& config) { return config.setting("job").text.value_or(""); }

}  // namespace

TraceJob::TraceJob(const Config& train, Streams& streams) : streams_(streams), config_(train) {}

TraceJob::~TraceJob() { close(); }

Outcome TraceJob::open() {
  Outcome failure;
  const ElasticOptions options = read_elastic_options(config_, failure);
  if (failure) return failure;
  const std::uint64_t lineage = random_lineage();
  config_ = with_elastic_defaults(config_, options.etcd, lineage, failure);
  if (!failure) failure = prepare_run(config_, lineage, streams_, run_);
  if (!failure) failure = make_directory(run_);
  if (failure) return failure;
  signals_ = std::make_unique<SignalWatch>();
  auto etcd = EtcdServer::start(etcd_data(run_.directory), run_.directory.path + "/etcd.log", EtcdServer::kUsualLimit);
  if (!etcd) return etcd.error();
  etcd_ = std::move(etcd).value();
  set_etcd_address(run_.config, etcd_->address());
  return create();
}

Outcome TraceJob::create() {
  auto store = connect_store(etcd_->address());
  if (!store) return store.error();
  store_ = std::move(store).value();
  // By this directory workers know that they see the same file system.
  storage::FileSystem& files = run_.checkpoints->store->files().files;
  const Status made = files.make_directories(storage::lineage_directory(run_.lineage));
  if (!made) return made.error();
  const elastic::JobSpec spec = spec_of(run_.config, run_.lineage, run_.checkpoints->generation, {});
  const auto created = create_job(*store_, job_name(run_.config), spec, {}, std::nullopt);
  if (!created) return created.error();
  const Status told = write_job_address(run_.directory.path, run_.config);
  return told ? Outcome() : Outcome(told.error());
}

Status TraceJob::start_worker(int number) {
  EVERSTEP_CHECK(number == workers_.size(), "workers start in the order of their numbers");
  WorkerStart start = local_worker(run_.config, run_.directory, number);
  start.args.push_back("--host-name=node-" + std::to_string(number));
  return workers_.start(start);
}

std::optional<int> TraceJob::leave_signal() const {
  while (const auto signal = signals_->next()) {
    if (*signal != SIGCHLD) return signal;
  }
  return std::nullopt;
}

Status TraceJob::ask_to_stop() {
  return JobRequests(*store_, elastic::Keys(job_name(run_.config))).ask_to_stop("the trace is over");
}

void TraceJob::close() {
  workers_.kill_all();
  store_.reset();
  if (std::exchange(etcd_, nullptr)) {
    remove_job_address(run_.directory.path);
    std::error_code ignored;
    std::filesystem::remove_all(etcd_data(run_.directory), ignored);
  }
  signals_.reset();
}

Result<AuditReport> TraceJob::audit() {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return audit_job(*run_.checkpoints->store, threads, streams_);
}

}  // namespace everstep::launcher
