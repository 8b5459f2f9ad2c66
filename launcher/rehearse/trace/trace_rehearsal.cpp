#include "launcher/rehearse/trace/trace_rehearsal.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/progress_line.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/train_plan.h"
#include "launcher/rehearse/trace/trace_job.h"
#include "launcher/supervise/elastic_supervisor.h"
#include "launcher/supervise/generation_report.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kLookAtTrace{100};
constexpr Tick kBetweenLines = kTicksPerSecond / 5;
constexpr Tick kStartLimit = 120 * kTicksPerSecond;
constexpr Tick kTakeInLimit = 60 * kTicksPerSecond;  // after the trace's end
constexpr Tick kStopLimit = 60 * kTicksPerSecond;
constexpr std::int64_t kWarmUp = 5;  // updates before the trace begins

class TraceRehearsal {
 public:
  TraceRehearsal(const TraceRequest& request, Streams& streams, TraceResult& result)
      : request_(request), streams_(streams), result_(result), job_(request.train, streams), line_(streams) {}

  Outcome run() {
    if (auto failure = start()) return failure;
    begin_ = monotonic_now();
    // What came before is no part of it, but the last update is where the first change is reckoned from.
    result_.record.steps.erase(result_.record.steps.begin(), result_.record.steps.end() - 1);
    Outcome failure = play();
    if (!failure) failure = take_all_in();
    if (!failure) failure = stop();
    line_.clear();
    if (failure) return failure;
    return prove();
  }

 private:
  struct Worker {
    bool is_asked_to_leave = false;
    bool is_killed = false;
    bool has_ended = false;
  };

  Outcome start() {
    if (auto failure = job_.open()) return failure;
    result_.job = job_.run().request;
    result_.output = job_.run().directory.path;
    result_.record.window = result_.job.plan.window;
    for (int i = 0; i < request_.schedule.first_workers; ++i) {
      if (auto failure = start_worker(i)) return failure;
    }
    std::int64_t made = 0;
    const auto is_warm = [&] {
      const auto& steps = result_.record.steps;
      made = std::count_if(steps.begin(), steps.end(),
                           [&](const StepMark& step) { return step.generation == steps.back().generation; });
      return trains_with_all() && made >= kWarmUp;
    };
    const Tick limit = monotonic_now() + kStartLimit;
    while (!is_warm()) {
      if (auto failure = look("starting")) return failure;
      if (job_.all_ended() || monotonic_now() > limit) {
        return Error{ErrorCode::kUnavailable, "the job did not start", "the workers' logs are in " + result_.output};
      }
    }
    return {};
  }

  // Carries the actions out, each at its time.
  Outcome play() {
    const std::vector<WorkerAction> actions = actions_of(request_.schedule, request_.speedup, request_.notice);
    const Tick duration = ticks_of(request_.real_seconds());
    auto next = actions.begin();
    while (true) {
      const Tick now = monotonic_now() - begin_;
      LogLine event("trace");
      event.add("hours",
                (static_cast<double>(request_.slice.from_ms) / 1000 + to_seconds(now) * request_.speedup) / 3600);
      const auto first = next;
      for (; next != actions.end() && next->at <= now; ++next) {
        if (auto failure = carry_out(*next, event)) return failure;
      }
      if (next != first) tell(event);
      if (now >= duration) return {};
      const Tick until = std::min(next == actions.end() ? duration : next->at, duration);
      if (auto failure = look("replaying", until - now)) return failure;
    }
  }

  Outcome carry_out(const WorkerAction& action, LogLine& event) {
    const std::string name = worker_name(action.worker);
    switch (action.kind) {
      case ActionKind::kStart:
        event.add("start", name);
        ++result_.started;
        result_.record.joins.push_back({action.worker, monotonic_now(), std::nullopt});
        end_nobody();
        return start_worker(action.worker);
      case ActionKind::kAskToLeave:
        event.add("term", name);
        workers_[action.worker].is_asked_to_leave = true;
        job_.signal(action.worker, SIGTERM);
        return {};
      case ActionKind::kKill:
        event.add("kill", name);
        kill(action.worker);
        return {};
    }
    return {};
  }

  void kill(int number) {
    Worker& worker = workers_[number];
    ++(worker.has_ended && worker.is_asked_to_leave ? result_.asked_to_leave : result_.killed);
    worker.is_killed = true;
    if (worker.has_ended) return;
    result_.record.losses.push_back(monotonic_now());
    job_.signal(number, SIGKILL);
    if (there() == 0) result_.record.nobody.push_back({monotonic_now(), monotonic_now()});
  }

  // When somebody comes, or nobody does any more.
  void end_nobody() {
    if (there() == 0 && !result_.record.nobody.empty()) result_.record.nobody.back().end = monotonic_now();
  }

  Outcome start_worker(int number) {
    const Status started = job_.start_worker(number);
    if (!started) return started.error();
    workers_.emplace_back();
    return {};
  }

  int there() const {
    return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) {
      return !worker.has_ended && !worker.is_killed && !worker.is_asked_to_leave;
    }));
  }

  // Whether the job trains with as many workers as a plan for those that are there has.
  bool trains_with_all() {
    const TraceRecord& record = result_.record;
    if (record.changes.empty() || record.steps.empty()) return false;
    const GenerationChanged& change = record.changes.back();
    if (record.steps.back().generation != change.generation) return false;
    return change.workers == planned_workers(there());
  }

  int planned_workers(int workers) {
    const auto known = planned_.find(workers);
    if (known != planned_.end()) return known->second;
    const auto plan = make_train_plan(result_.job, unnamed_workers(workers), nullptr);
    return planned_[workers] = plan ? static_cast<int>(plan->plan.workers.size()) : 0;
  }

  Outcome take_all_in() {
    const Tick limit = monotonic_now() + kTakeInLimit;
    if (there() == 0) {
      result_.took_all_in = true;
      end_nobody();
      return {};
    }
    const std::size_t before = result_.record.steps.size();
    while (monotonic_now() < limit) {
      result_.took_all_in = trains_with_all() && result_.record.steps.size() > before;
      if (result_.took_all_in) return {};
      if (auto failure = look("the last change")) return failure;
    }
    if (result_.record.steps.size() > before) return {};
    return Error{ErrorCode::kDeadlineExceeded, "the job made no update after the end of the trace",
                 "the workers' logs are in " + result_.output};
  }

  Outcome stop() {
    is_stopping_ = true;
    const Tick limit = monotonic_now() + kStopLimit;
    bool is_told = false;
    while (!job_.all_ended()) {
      if (!is_told) is_told = job_.ask_to_stop().ok();
      if (monotonic_now() > limit) {
        return Error{ErrorCode::kDeadlineExceeded, "the job did not stop",
                     "the workers' logs are in " + result_.output};
      }
      if (auto failure = look("stopping")) return failure;
    }
    return {};
  }

  // By the files alone.
  Outcome prove() {
    job_.close();
    const auto report = job_.audit();
    if (!report) return report.error();
    result_.audited = report->minibatches;
    for (const Violation& violation : report->violations) {
      result_.problems.push_back(std::string(to_string(violation.proof)) + ": " + violation.object + " " +
                                 violation.what);
    }
    return {};
  }

  Outcome look(const std::string& what, Tick longest = kTicksPerSecond) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(longest));
    for (const WorkerEvent& event : job_.wait(std::min(wait, kLookAtTrace))) take(event);
    if (const auto signal = job_.leave_signal()) {
      line_.clear();
      return Error{ErrorCode::kCancelled, "stopped by " + signal_name(*signal), ""};
    }
    show(what);
    return {};
  }

  void take(const WorkerEvent& event) {
    Worker& worker = workers_[event.rank];
    if (!event.message) {
      worker.has_ended = true;
      const bool is_wanted = worker.is_killed || worker.is_asked_to_leave || is_stopping_;
      if (!is_wanted) result_.ended.push_back(worker_name(event.rank));
      return;
    }
    if (is_stopping_) return;
    if (const auto* step = std::get_if<ElasticStep>(&*event.message)) {
      take(event.rank, *step);
    } else if (const auto* change = std::get_if<GenerationChanged>(&*event.message)) {
      if (!tally_.take(*change)) return;
      result_.record.changes.push_back(*change);
      tell(generation_event(*change));
    }
  }

  void take(int worker, const ElasticStep& step) {
    auto& joins = result_.record.joins;
    const auto join =
        std::find_if(joins.begin(), joins.end(), [&](const JoinMark& mark) { return mark.worker == worker; });
    if (join != joins.end() && !join->first_step) join->first_step = step.report.at;
    if (tally_.take(step)) result_.record.steps.push_back({step.generation, step.report.step, step.report.at});
  }

  void tell(const LogLine& event) { tell(event.text()); }
  void tell(const std::string& event) {
    line_.clear();
    print_event(streams_, event);
  }

  void show(const std::string& what) {
    if (!line_.is_visible() || monotonic_now() - shown_at_ < kBetweenLines) return;
    shown_at_ = monotonic_now();
    std::string text = what;
    if (begin_ > 0) {
      const double hours = to_seconds(shown_at_ - begin_) * request_.speedup / 3600;
      const double whole = static_cast<double>(request_.slice.duration_ms) / 3.6e6;
      text += "  " + fixed_text(std::min(hours, whole), 2) + " of " + number_text(whole, 2) + " h";
    }
    text += "  " + counted(there(), "worker", "workers");
    const TraceRecord& record = result_.record;
    if (!record.changes.empty()) text += "  " + generation_text(record.changes.back());
    if (!record.steps.empty()) text += "  step " + std::to_string(record.steps.back().step);
    line_.show(text);
  }

  const TraceRequest& request_;
  Streams& streams_;
  TraceResult& result_;
  TraceJob job_;
  ProgressLine line_;
  GenerationTally tally_;
  std::vector<Worker> workers_;
  std::map<int, int> planned_;  // workers of the plan for so many
  Tick begin_ = 0;
  Tick shown_at_ = 0;
  bool is_stopping_ = false;
};

}  // namespace

Outcome rehearse_trace(const TraceRequest& request, Streams& streams, TraceResult& result) {
  return TraceRehearsal(request, streams, result).run();
}

}  // namespace everstep::launcher
