#include "launcher/supervise/elastic_train.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log_line.h"
#include "elastic/sealed_store.h"
#include "launcher/cli/host.h"
#include "launcher/job/data_digest.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/job/job_setup.h"
#include "launcher/job/lineage.h"
#include "launcher/job/resume_command.h"
#include "launcher/job/store_connection.h"
#include "launcher/job/stored_model.h"
#include "launcher/status/job_address.h"
#include "launcher/supervise/elastic_supervisor.h"
#include "launcher/supervise/etcd_directory.h"
#include "launcher/supervise/etcd_server.h"
#include "launcher/supervise/generation_report.h"
#include "launcher/supervise/job_summary.h"
#include "launcher/supervise/local_devices.h"
#include "launcher/supervise/local_workers.h"
#include "launcher/supervise/prepared_run.h"
#include "launcher/supervise/run_end.h"
#include "launcher/supervise/run_reporter.h"
#include "launcher/worker/kv_head_store.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::seconds kLastWords{5};
constexpr std::size_t kLongestHostInName = 48;  // a worker's name has 63 characters at most

// One run, from its options to its result. What it holds goes in the opposite order: workers, connection, etcd.
class ElasticTrain {
 public:
  ElasticTrain(const Config& config, Streams& streams) : streams_(streams), config_(config) {}
  ElasticTrain(const ElasticTrain&) = delete;
  ElasticTrain& operator=(const ElasticTrain&) = delete;
  ~ElasticTrain() {
    if (etcd_data_) remove_job_address(run_.directory.path);  // its etcd goes too
  }

  Outcome run() {
    Outcome failure = read();
    if (!failure && options_.etcd.kind == EtcdAddress::Kind::kServers) failure = look_for_job();
    if (!failure) failure = found_ ? prepare_to_join() : prepare_run(config_, lineage_, streams_, run_);
    if (failure) return failure;
    if (run_.checkpoints && run_.steps_before() >= run_.request.options.steps) {
      tell_idle_run(run_, streams_);
      return {};
    }
    failure = make_directory(run_);
    if (failure) return failure;
    if (!found_) log_plan(run_, streams_);
    if (run_.checkpoints && run_.checkpoints->start) {
      print_event(streams_, resumed_event(*run_.checkpoints, run_.plan));
    }
    const SignalWatch signals;
    failure = open_job();
    if (!failure) failure = train(signals);
    return leave_word(run_.directory, config_, summary_, std::move(failure));
  }

 private:
  Outcome read() {
    Outcome failure = find_devices(config_, ask_worker_program, streams_, devices_);
    if (failure) return failure;
    options_ = read_elastic_options(config_, failure);
    if (failure) return failure;
    config_ = with_elastic_defaults(config_, options_.etcd, lineage_, failure);
    Values values(config_);
    job_ = read_job_name(config_, values, failure);
    if (failure) return failure;
    const TrainRequest request = read_train_request(config_, host_memory_bytes(), failure);
    if (!failure) secret_ = request.checkpoints->store.secret;
    return failure;
  }

  Outcome connect() {
    auto store = connect_store(options_);
    if (!store) return config_.setting("etcd").text == "own" ? Outcome(store.error()) : blame_etcd(store.error());
    store_ = std::move(store).value();
    return {};
  }

  // A server that does not answer is no mistake of the command line.
  Outcome blame_etcd(const Error& error) const {
    return error.code == ErrorCode::kInvalidArgument ? Outcome(config_.blame("etcd", error)) : Outcome(error);
  }

  Outcome look_for_job() {
    // Threads of the store must not be those that get a signal; long work before the run has its own watch.
    const SignalWatch blocked;
    if (auto failure = connect()) return failure;
    auto found = find_job(*store_, job_, secret_);
    if (!found) return config_.blame("job", found.error());
    found_ = *std::move(found);
    return {};
  }

  // The job is there: these are more workers for it.
  Outcome prepare_to_join() {
    if (config_.setting("memory-gib").source == Source::kDefault) {
      for (const auto& [name, value] : found_->spec.settings) {
        if (name == "memory-gib") set_setting(config_, name, value);
      }
    }
    Outcome failure;
    run_.config = config_;
    run_.request = read_train_request(config_, host_memory_bytes(), failure);
    if (!failure) failure = check_data(run_);
    if (failure) return failure;
    auto plan = make_train_plan(run_.request);
    if (!plan) return plan.error();
    run_.plan = std::move(plan).value();
    run_.lineage = found_->spec.lineage;
    auto digest = digest_of_data();
    if (!digest) return config_.blame("data", digest.error());
    const Status same = check_same_job(job_, *found_, spec_of(config_, run_.lineage, {}, *digest));
    if (!same) return config_.blame("job", same.error());
    return {};
  }

  Result<std::string> digest_of_data() const {
    if (!run_.request.data) return std::string();
    return data_digest(run_.request.data->path, *storage::make_openssl_hashing());
  }

  // Starts etcd if it is to be our own, and creates the job unless it is there.
  Outcome open_job() {
    if (options_.etcd.kind == EtcdAddress::Kind::kOwn) {
      // A run that was killed could not clean up: whoever goes on with it does.
      const std::string checkpoints = run_.request.checkpoints->store.directory;
      remove_left_etcd_data(run_.directory.path);
      remove_left_etcd_data(std::filesystem::path(checkpoints).parent_path());
      auto data = EtcdDirectory::make(run_.directory.path);
      if (!data) return data.error();
      etcd_data_ = std::move(data).value();
      auto etcd = EtcdServer::start(etcd_data_->path(), run_.directory.path + "/etcd.log", EtcdServer::kUsualLimit);
      if (!etcd) return etcd.error();
      etcd_ = std::move(etcd).value();
      options_.etcd = etcd_->address();
    }
    if (!store_) {
      if (auto failure = connect()) return failure;
    }
    set_etcd_address(run_.config, options_.etcd);
    elastic::RecordSeal seal = found_ ? found_->seal : elastic::RecordSeal();
    if (!found_) {
      // By this directory workers of other hosts know that they see the same file system.
      storage::FileSystem& files = run_.checkpoints->store->files().files;
      const Status made = files.make_directories(storage::lineage_directory(run_.lineage));
      if (!made) return config_.blame("checkpoint-dir", made.error());
      auto created = create_job(*store_, job_, spec(), secret_, start());
      if (!created) return config_.blame("job", created.error());
      seal = std::move(created).value();
    }
    store_ = std::make_unique<elastic::SealedStore>(std::move(store_), std::move(seal));
    if (const Status told = write_job_address(run_.directory.path, run_.config); !told) return told.error();
    LogLine event(found_ ? "job_joined" : "job_created");
    event.add("job", job_).add("etcd", *run_.config.setting("etcd").text);
    // Only by its certificates anybody gets in, and that file tells where they are.
    if (etcd_) event.add("join", "everstep worker --config=" + job_address_file(run_.directory.path));
    print_event(streams_, event.text());
    return {};
  }

  elastic::JobSpec spec() const {
    const std::string_view digest = setting_of(run_.checkpoints->settings, "data-digest");
    const auto& newest = run_.checkpoints->found;
    return spec_of(run_.config, run_.lineage, run_.checkpoints->generation, std::string(digest),
                   newest ? newest->sequence : 0);
  }

  std::optional<elastic::HeadRecord> start() const {
    if (!run_.checkpoints->start) return std::nullopt;
    const storage::CatalogPorts ports = run_.checkpoints->store->ports();
    return head_record(run_.checkpoints->start->head, ports.documents, ports.seal);
  }

  Outcome train(const SignalWatch& signals) {
    const trainer::TrainOptions& options = run_.request.options;
    RunReporter reporter(
        {options.steps, options.evaluate_every, options.model.tokens_per_minibatch() * run_.request.plan.window,
         run_.directory.metrics(), options.accumulation},
        streams_);
    GenerationTally tally;
    ElasticSupervision supervision(*store_, elastic::Keys(job_), signals);
    supervision.own_etcd = etcd_.get();
    if (etcd_data_) supervision.etcd_data = etcd_data_->path();
    supervision.membership = options_.membership;
    supervision.steps = options.steps;
    supervision.workers = run_.request.workers;
    if (found_) supervision.name_prefix = host_name().substr(0, kLongestHostInName) + "-";
    supervision.seats = static_cast<int>(devices_.numbers.size());
    supervision.worker = [this, prefix = supervision.name_prefix](int number, int seat) {
      return local_worker(run_.config, run_.directory, number, prefix, devices_.device_of(seat));
    };
    supervision.restart = options_.restart;
    supervision.last_words = options_.membership.lease_ttl + kLastWords;
    connect_reporter(reporter, tally, supervision);
    reporter.on_start(monotonic_now());
    const ElasticEnd end = supervise_elastic(supervision);
    reporter.on_end();
    const JobEnd facts{run_, *store_, elastic::Keys(job_), end};
    if (end.etcd_was_away) return lost_without_etcd(facts, reporter);
    if (end.failure) return end.failure;
    RunSummary summary = summarize(facts, reporter, tally);
    const bool has_saved = summary.checkpoints && summary.checkpoints->last_step;
    if (summary.steps < options.steps && has_saved) summary.resume = resume_command(config_);
    summary_ = summary_text(summary);
    streams_.out << (run_.request.json ? summary_json(summary) + "\n" : summary_) << std::flush;
    remove_etcd();
    if (auto failure = check_last_checkpoint(facts, summary)) return failure;
    if (summary.steps >= options.steps) return {};
    return stopped_early(summary.steps, options.steps, end.stop_signal);
  }

  static void connect_reporter(RunReporter& reporter, GenerationTally& tally, ElasticSupervision& supervision) {
    supervision.on_step = [&](const ElasticStep& step) {
      if (tally.take(step)) reporter.on_step(step.report, step.generation);
    };
    supervision.on_validation = [&](const Validation& validation) {
      if (tally.take(validation)) reporter.on_validation(validation.loss);
    };
    supervision.on_generation = [&](const GenerationChanged& change) {
      if (!tally.take(change)) return;
      reporter.on_generation(generation_text(change));
      reporter.note(generation_event(change));
    };
    supervision.on_event = [&](const std::string& event) { reporter.note(event); };
    supervision.on_stop_request = [&](int signal) { reporter.note(stopping_event(signal)); };
  }

  // What it knew is in the checkpoints. After a failure it stays for whoever wants to know why.
  void remove_etcd() {
    store_.reset();
    if (!etcd_) return;
    etcd_.reset();
    etcd_data_->remove();
  }

  Streams& streams_;
  Config config_;
  LocalDevices devices_;
  ElasticOptions options_;
  std::string job_;
  std::string secret_;
  const std::uint64_t lineage_ = random_lineage();
  std::optional<FoundJob> found_;
  PreparedRun run_;
  std::string summary_;                       // as it was printed; empty: there was none
  std::unique_ptr<EtcdDirectory> etcd_data_;  // of our own etcd
  std::unique_ptr<EtcdServer> etcd_;
  std::unique_ptr<elastic::KvStore> store_;
};

}  // namespace

Outcome train_elastic(const Config& config, Streams& streams) { return ElasticTrain(config, streams).run(); }

Outcome check_elastic(const Config& config) {
  Outcome failure;
  const ElasticOptions options = read_elastic_options(config, failure);
  if (failure) return failure;
  Config known = config;
  failure = check_device(known);
  if (failure) return failure;
  const Config whole = with_elastic_defaults(known, options.etcd, random_lineage(), failure);
  Values values(whole);
  if (!failure) read_job_name(whole, values, failure);
  PreparedRun run;
  return failure ? failure : check_run(whole, run);
}

}  // namespace everstep::launcher
