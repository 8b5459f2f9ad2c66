#include "launcher/supervise/elastic_supervisor.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "base/log_line.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/job/patient_store.h"
#include "launcher/supervise/etcd_keeper.h"
#include "launcher/supervise/job_requests.h"
#include "launcher/supervise/restart_pause.h"
#include "launcher/supervise/worker_fate.h"
#include "launcher/worker/outage_clock.h"

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAtJob{200};
// How often to look for requests in the store.
constexpr std::chrono::seconds kBetweenRequests{1};
constexpr std::chrono::milliseconds kFirstRestart{1'000};
constexpr std::chrono::milliseconds kLongestRestart{60'000};

class ElasticSupervisor {
 public:
  explicit ElasticSupervisor(const ElasticSupervision& supervision)
      : supervision_(supervision),
        requests_(supervision.store, supervision.keys),
        pause_(kFirstRestart, kLongestRestart),
        outage_(supervision.membership) {
    if (supervision.own_etcd == nullptr) return;
    etcd_.emplace(*supervision.own_etcd, supervision.etcd_data, [this](const LogLine& event) { tell(event); });
  }

  ElasticEnd run() {
    for (int i = 0; i < supervision_.workers; ++i) {
      if (const Status started = start_worker(); !started) {
        ElasticEnd end;
        end.failure = Failure(started.error());
        return end;
      }
    }
    while (!is_over()) {
      for (const WorkerEvent& event : processes_.wait(supervision_.signals, -1, kLookAtJob)) take(event);
      while (const auto signal = supervision_.signals.next()) take_signal(*signal);
      if (etcd_) etcd_->look();
      restart_workers();
      look_for_others();
      look_for_requests();
    }
    ElasticEnd reached = end();
    processes_.kill_all();
    return reached;
  }

 private:
  struct Worker {
    WorkerFate fate;
    Clock::time_point born = Clock::now();
    bool is_asked_to_leave = false;
    int seat = 0;

    bool lives() const { return !fate.wait_status; }
    // It went because somebody wanted it to.
    bool has_left() const { return !lives() && fate.error && fate.error->code == ErrorCode::kCancelled; }
  };

  Status start_worker() {
    const int seat = free_seat();
    if (supervision_.seats > 0 && seat >= supervision_.seats) {
      return invalid_argument("each device of this host has a worker already: " + std::to_string(supervision_.seats));
    }
    const WorkerStart start = supervision_.worker(static_cast<int>(workers_.size()), seat);
    EVERSTEP_TRY(processes_.start(start));
    workers_.emplace_back().fate.log_path = start.log_path;
    workers_.back().seat = seat;
    return {};
  }

  int free_seat() const {
    std::set<int> taken;
    for (const Worker& worker : workers_) {
      if (worker.lives()) taken.insert(worker.seat);
    }
    int seat = 0;
    while (taken.contains(seat)) ++seat;
    return seat;
  }

  bool is_over() const {
    if (left_at_once_ || (done_at_ && Clock::now() - *done_at_ > supervision_.last_words)) return true;
    return outage_.is_too_long() || (has_nobody() && !serves_others_);
  }

  bool has_nobody() const { return processes_.all_ended() && restarts_.empty(); }

  // Workers that this run did not start cannot go on without its etcd.
  void look_for_others() {
    if (!etcd_ || left_at_once_ || !has_nobody()) return;
    if (serves_others_ && Clock::now() - *looked_for_others_ < kBetweenRequests) return;
    looked_for_others_ = Clock::now();
    std::set<std::string> names;
    for (const Worker& worker : workers_) names.insert(name_of(number_of(worker)));
    const bool there_are = requests_.has_others(names).value_or(serves_others_);
    if (there_are && !serves_others_) tell(LogLine("serving_others"));
    serves_others_ = there_are;
    has_served_others_ = has_served_others_ || there_are;
    // One that came while the job stopped has begun anew.
    if (there_are) is_stop_told_ = false;
  }

  void tell(const LogLine& event) const { supervision_.on_event(event.text()); }

  void take(const WorkerEvent& event) {
    Worker& worker = workers_[event.rank];
    if (event.message) {
      std::visit([&](const auto& message) { take(worker, message); }, *event.message);
    } else {
      worker.fate.end(event.wait_status);
      take_end(worker);
    }
  }

  void take(Worker&, const Hello&) {}
  void take(Worker&, const Alive&) {}
  void take(Worker&, const trainer::StepReport&) {}
  void take(Worker&, const trainer::ShardSaved&) {}
  void take(Worker&, const Validation& validation) { supervision_.on_validation(validation); }
  void take(Worker&, const WorkerNote& note) { supervision_.on_event(note.event); }
  // All workers skip the same saves, and several may fail in one.
  void take(Worker&, const trainer::SaveSkipped& skipped) {
    if (!skipped_.insert(skipped.position).second) return;
    tell(LogLine("checkpoint_skipped").add("position", skipped.position.value));
  }
  void take(Worker&, const trainer::SaveFailed& failed) { failed_.insert(to_string(failed.checkpoint)); }
  void take(Worker& worker, const Error& error) { worker.fate.error = error; }

  void take(Worker&, const ElasticStep& step) {
    has_started_ = true;
    last_step_ = step.report.step;
    supervision_.on_step(step);
  }

  void take(Worker&, const GenerationChanged& change) {
    has_started_ = true;
    // A worker that came while the job stopped has begun it anew.
    is_stop_told_ = false;
    supervision_.on_generation(change);
  }

  void take(Worker& worker, const Finished& finished) {
    worker.fate.finished = finished;
    if (!done_at_) done_at_ = Clock::now();
  }

  void take_end(Worker& worker) {
    last_to_end_ = number_of(worker);
    if (worker.fate.is_done()) return;
    const std::string name = name_of(number_of(worker));
    if (worker.has_left()) {
      tell(LogLine("worker_left").add("name", name).add("reason", worker.fate.error->message));
      return;
    }
    LogLine event("worker_died");
    event.add("name", name);
    describe_end(*worker.fate.wait_status, event);
    if (!worker.fate.crash.empty()) event.add("in", worker.fate.crash);
    if (worker.fate.error) event.add("reason", worker.fate.error->line());
    const bool restarts = supervision_.restart == RestartPolicy::kOnFailure && !done_at_ && !stop_signal_ &&
                          !worker.is_asked_to_leave && is_worth_a_restart(worker.fate);
    if (restarts) {
      const auto pause = pause_.after_life_of(Clock::now() - worker.born);
      restarts_.push_back(Clock::now() + pause);
      event.add("restart_in_s", std::chrono::duration<double>(pause).count());
    }
    tell(event);
  }

  std::string name_of(int number) const { return worker_name(number, supervision_.name_prefix); }
  int number_of(const Worker& worker) const { return static_cast<int>(&worker - workers_.data()); }

  void restart_workers() {
    if (done_at_ || stop_signal_) restarts_.clear();
    const auto due =
        std::partition(restarts_.begin(), restarts_.end(), [](Clock::time_point when) { return when > Clock::now(); });
    const auto count = restarts_.end() - due;
    restarts_.erase(due, restarts_.end());
    for (auto i = count; i > 0; --i) start_another();
  }

  void start_another() {
    const Status started = start_worker();
    if (started) {
      tell(LogLine("worker_started").add("name", name_of(static_cast<int>(workers_.size()) - 1)));
    } else {
      tell(LogLine("worker_not_started").add("reason", started.error().line()));
    }
  }

  void take_signal(int signal) {
    if (signal == SIGCHLD) return;
    left_at_once_ = stop_signal_.has_value() || !has_started_;
    if (stop_signal_) return;
    stop_signal_ = signal;
    asked_at_.reset();
    if (has_started_) supervision_.on_stop_request(signal);
  }

  void look_for_requests() {
    if (left_at_once_ || done_at_ || (asked_at_ && Clock::now() - *asked_at_ < kBetweenRequests)) return;
    asked_at_ = Clock::now();
    const auto scale = requests_.next_scale();
    if (stop_signal_) {
      ask_job_to_stop();
    } else {
      if (scale) take_scale(*scale);
      if (target_) ask_newest_to_leave();
    }
    outage_.set_at_end(stop_signal_ || last_step_ >= supervision_.steps, boot_now());
    requests_.was_answered() ? outage_.answered() : outage_.failed(boot_now());
  }

  void ask_job_to_stop() {
    if (is_stop_told_) return;
    const Status asked = requests_.ask_to_stop(signal_name(*stop_signal_));
    is_stop_told_ = asked.ok();
    if (asked || std::exchange(is_wait_told_, true)) return;
    tell(LogLine("stop_waits")
             .add("reason", asked.error().message)
             .add("ends_in_s", OutageClock::kPatienceAtEnd / kTicksPerSecond)
             .add("hint", "no checkpoint can be made without etcd; a second signal ends it at once"));
  }

  int staying() const {
    const auto stays = [](const Worker& worker) { return worker.lives() && !worker.is_asked_to_leave; };
    return static_cast<int>(std::ranges::count_if(workers_, stays) + std::ssize(restarts_));
  }

  void take_scale(int wanted) {
    constexpr int kMostWorkers = 128;
    target_ = std::clamp(wanted, 0, kMostWorkers);
    // One that `everstep drain` asked is as good as gone.
    const std::set<std::string> leavers = requests_.leavers();
    for (Worker& worker : workers_) {
      worker.is_asked_to_leave = worker.is_asked_to_leave || leavers.contains(name_of(number_of(worker)));
    }
    tell(LogLine("scaling").add("from", staying()).add("to", *target_));
    for (int missing = *target_ - staying(); missing > 0; --missing) start_another();
  }

  // One that is not a member yet is asked the next time.
  void ask_newest_to_leave() {
    for (auto worker = workers_.rbegin(); worker != workers_.rend() && staying() > *target_; ++worker) {
      if (!worker->lives() || worker->is_asked_to_leave) continue;
      const std::string name = name_of(number_of(*worker));
      if (!requests_.ask_to_leave(name, "everstep scale")) return;
      worker->is_asked_to_leave = true;
    }
    target_.reset();
  }

  ElasticEnd end() {
    ElasticEnd end;
    end.stop_signal = stop_signal_;
    end.saves_skipped = std::ssize(skipped_);
    end.saves_failed = std::ssize(failed_);
    std::vector<WorkerFate> fates;
    for (const Worker& worker : workers_) {
      if (worker.fate.finished) end.finished.push_back(*worker.fate.finished);
      fates.push_back(worker.has_left() ? WorkerFate{Finished{}, std::nullopt, 0, false, ""} : worker.fate);
    }
    if (left_at_once_) {
      end.failure = Failure({ErrorCode::kCancelled, "left at once: " + signal_name(*stop_signal_), ""});
    } else if (end.finished.empty() && is_for_want_of_etcd()) {
      end.etcd_was_away = true;
      end.failure = Failure(outage_.error());
    } else if (end.finished.empty()) {
      end.left_to_others = has_served_others_ && (stop_signal_ || requests_.is_finished());
      if (!end.left_to_others) end.failure = failure_of(fates);
    }
    return end;
  }

  // Workers measure the outage themselves, and may be the first to end.
  bool is_for_want_of_etcd() const {
    if (outage_.is_too_long()) return true;
    if (!outage_.is_away() || !last_to_end_) return false;
    const std::optional<Error>& error = workers_[*last_to_end_].fate.error;
    return error && is_silence(*error);
  }

  // What others outlived is no failure of the job: the last one's end is this host's.
  Outcome failure_of(const std::vector<WorkerFate>& fates) {
    if (!last_to_end_ || !workers_[*last_to_end_].has_left()) return Failure(explain_failure(fates));
    if (stop_signal_ || requests_.is_stopped()) return {};
    return Failure({ErrorCode::kCancelled, "all workers of this host left the job as they were asked to", ""});
  }

  const ElasticSupervision& supervision_;
  JobRequests requests_;
  WorkerProcesses processes_;
  std::vector<Worker> workers_;
  RestartPause pause_;
  OutageClock outage_;
  std::optional<EtcdKeeper> etcd_;           // none: the store is not ours
  std::vector<Clock::time_point> restarts_;  // when
  std::optional<int> target_;                // workers, as long as too many are there
  std::optional<int> last_to_end_;
  bool serves_others_ = false;
  bool has_served_others_ = false;
  std::optional<Clock::time_point> looked_for_others_;
  bool has_started_ = false;
  std::int64_t last_step_ = 0;
  bool left_at_once_ = false;
  bool is_stop_told_ = false;  // to the job
  bool is_wait_told_ = false;  // to people: the job cannot be told yet
  std::optional<int> stop_signal_;
  std::optional<Clock::time_point> done_at_;
  std::optional<Clock::time_point> asked_at_;
  std::set<Position> skipped_;
  std::set<std::string> failed_;
};

}  // namespace

std::string worker_name(int number, const std::string& prefix) { return prefix + "w" + std::to_string(number); }

ElasticEnd supervise_elastic(const ElasticSupervision& supervision) { return ElasticSupervisor(supervision).run(); }

}  // namespace everstep::launcher
