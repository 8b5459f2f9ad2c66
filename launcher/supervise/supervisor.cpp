#include "launcher/supervise/supervisor.h"

#include <algorithm>
#include <csignal>
#include <optional>

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// How often to look for silent workers.
constexpr std::chrono::milliseconds kLookAtWorkers{200};
// How long a worker may take to be ready for its peers: loading its libraries and looking at the data come before.
constexpr std::chrono::seconds kStartUp{60};
// How long the others may take to tell what they saw, once one has failed. Long enough to tell who is silent.
constexpr std::chrono::milliseconds kForLastWords{4 * kAliveEvery};

class Supervisor {
 public:
  explicit Supervisor(const Supervision& supervision) : supervision_(supervision) {}

  SupervisionEnd run() {
    for (const WorkerStart& worker : supervision_.workers) {
      if (const Status started = processes_.start(worker); !started) return {Failure(started.error()), {}, {}};
      workers_.emplace_back().fate.log_path = worker.log_path;
    }
    while (!processes_.all_ended() && !left_at_once_ && !last_words_are_over()) {
      for (const WorkerEvent& event : processes_.wait(signals_, news_fd(), kLookAtWorkers)) take(event);
      pass_on_news();
      while (const auto signal = signals_.next()) take_signal(*signal);
      if (!failed_at_) look_for_silence();
    }
    SupervisionEnd reached = end();
    processes_.kill_all();
    return reached;
  }

 private:
  struct Worker {
    WorkerFate fate;
    std::string address;
    Clock::time_point born = Clock::now();
    Clock::time_point last_heard = born;
  };

  // Workers that have not met yet know nothing about each other.
  bool last_words_are_over() const { return failed_at_ && (!started_ || Clock::now() - *failed_at_ > kForLastWords); }

  int news_fd() const { return supervision_.committer == nullptr ? -1 : supervision_.committer->fd(); }

  void pass_on_news() {
    if (supervision_.committer == nullptr) return;
    for (const trainer::CheckpointCommitter::News& news : supervision_.committer->take_news()) {
      if (news.verdict) processes_.send(*news.verdict);
      if (!news.event.empty()) supervision_.on_event(news.event);
    }
  }

  // Words about checkpoints are the committer's business.
  template <typename Message>
  void tell_committer(const Worker& worker, const Message& message) {
    if (supervision_.committer == nullptr) return;
    supervision_.committer->take(static_cast<int>(&worker - workers_.data()), message);
  }

  void take(const WorkerEvent& event) {
    Worker& worker = workers_[event.rank];
    worker.last_heard = Clock::now();
    if (event.message) {
      std::visit([&](const auto& message) { take(worker, message); }, *event.message);
    } else {
      worker.fate.end(event.wait_status);
    }
    if (worker.fate.has_failed() && !failed_at_) failed_at_ = Clock::now();
  }

  void take(Worker& worker, const Hello& hello) {
    if (hello.setup != supervision_.setup) {
      const std::string difference = "its setup is '" + hello.setup + "', not '" + supervision_.setup + "'";
      take(worker, Error{ErrorCode::kInternal, difference, "are everstep and everstep-worker of one build?"});
      return;
    }
    worker.address = hello.address;
    tell_committer(worker, trainer::Libraries{hello.libraries});
    const bool all_here = std::ranges::none_of(workers_, &std::string::empty, &Worker::address);
    if (!all_here) return;
    Start start;
    for (const Worker& one : workers_) start.addresses.push_back(one.address);
    processes_.send(start);
    started_ = true;
    supervision_.on_start();
  }

  void take(Worker&, const Alive&) {}
  // Of elastic jobs, which have another supervisor.
  void take(Worker&, const ElasticStep&) {}
  void take(Worker&, const GenerationChanged&) {}
  void take(Worker&, const WorkerNote&) {}
  void take(Worker&, const trainer::StepReport& report) { supervision_.on_step(report); }
  void take(Worker&, const Validation& validation) { supervision_.on_validation(validation); }
  void take(Worker& worker, const trainer::ShardSaved& saved) { tell_committer(worker, saved); }
  void take(Worker& worker, const trainer::SaveFailed& failed) { tell_committer(worker, failed); }
  void take(Worker& worker, const trainer::SaveSkipped& skipped) { tell_committer(worker, skipped); }
  void take(Worker& worker, const Finished& finished) { worker.fate.finished = finished; }
  void take(Worker& worker, const Error& error) { worker.fate.error = error; }

  void take_signal(int signal) {
    if (signal == SIGCHLD) return;
    left_at_once_ = stop_signal_.has_value() || !started_;
    if (!stop_signal_) {
      stop_signal_ = signal;
      processes_.send(Stop{});
      if (started_) supervision_.on_stop_request(signal);
    }
  }

  void look_for_silence() {
    for (Worker& worker : workers_) {
      if (worker.fate.wait_status) continue;
      const auto now = Clock::now();
      if (worker.address.empty() && now - worker.born > kStartUp) {
        take(worker,
             Error{ErrorCode::kDeadlineExceeded, "was not ready within " + std::to_string(kStartUp.count()) + " s",
                   "is the host overloaded?"});
        failed_at_ = now;
      }
      if (!worker.address.empty() && now - worker.last_heard > supervision_.timeout + kAliveEvery) failed_at_ = now;
    }
  }

  SupervisionEnd end() const {
    std::vector<WorkerFate> fates;
    SupervisionEnd end;
    end.stop_signal = stop_signal_;
    for (const Worker& worker : workers_) {
      fates.push_back(worker.fate);
      fates.back().is_silent = !worker.fate.wait_status && Clock::now() - worker.last_heard > 3 * kAliveEvery;
      if (worker.fate.is_done()) end.finished.push_back(*worker.fate.finished);
    }
    if (end.finished.size() == workers_.size()) return end;
    end.finished.clear();
    end.failure = left_at_once_ ? Failure({ErrorCode::kCancelled, "left at once: " + signal_name(*stop_signal_), ""})
                                : Failure(explain_failure(fates));
    return end;
  }

  const Supervision& supervision_;
  SignalWatch signals_;
  WorkerProcesses processes_;
  std::vector<Worker> workers_;
  bool started_ = false;
  bool left_at_once_ = false;
  std::optional<int> stop_signal_;
  std::optional<Clock::time_point> failed_at_;
};

}  // namespace

SupervisionEnd supervise(const Supervision& supervision) { return Supervisor(supervision).run(); }

}  // namespace everstep::launcher
