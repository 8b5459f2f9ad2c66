#include "launcher/supervise/worker_fate.h"

#include <functional>
#include <utility>

#include <sys/wait.h>

#include "launcher/cli/signal_watch.h"
#include "launcher/worker/crash_report.h"

namespace everstep::launcher {
namespace {

bool is_about_peers(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kDeadlineExceeded ||
         error.code == ErrorCode::kCancelled;
}

using Explanation = std::function<std::optional<Error>(const WorkerFate&, const std::string& name)>;

std::string look_at_log(const WorkerFate& worker) { return "its last words are in " + worker.log_path; }

// Ordered from causes to consequences.
const std::vector<Explanation>& explanations() {
  static const std::vector<Explanation> list{
      [](const WorkerFate& worker, const std::string& name) -> std::optional<Error> {
        if (worker.error || !worker.wait_status || !WIFSIGNALED(*worker.wait_status)) return std::nullopt;
        return Error{ErrorCode::kUnavailable,
                     name + " was ended by " + signal_name(WTERMSIG(*worker.wait_status)) +
                         (worker.crash.empty() ? "" : " in " + worker.crash),
                     look_at_log(worker)};
      },
      [](const WorkerFate& worker, const std::string& name) -> std::optional<Error> {
        if (!worker.error || is_about_peers(*worker.error)) return std::nullopt;
        return Error{worker.error->code, name + ": " + worker.error->message, worker.error->hint};
      },
      [](const WorkerFate& worker, const std::string& name) -> std::optional<Error> {
        if (worker.error || worker.is_done() || !worker.wait_status) return std::nullopt;
        return Error{ErrorCode::kInternal,
                     name + " left without a word, exit code " + std::to_string(WEXITSTATUS(*worker.wait_status)),
                     look_at_log(worker)};
      },
      [](const WorkerFate& worker, const std::string& name) -> std::optional<Error> {
        if (worker.error || worker.finished || !worker.is_silent) return std::nullopt;
        return Error{ErrorCode::kUnavailable, name + " gives no sign of life", look_at_log(worker)};
      },
      [](const WorkerFate& worker, const std::string& name) -> std::optional<Error> {
        if (!worker.error) return std::nullopt;
        return Error{worker.error->code, name + ": " + worker.error->message, worker.error->hint};
      },
  };
  return list;
}

}  // namespace

void WorkerFate::end(int status) {
  wait_status = status;
  if (WIFSIGNALED(status)) crash = crash_told_in(log_path, WTERMSIG(status)).value_or("");
}

Error explain_failure(const std::vector<WorkerFate>& workers) {
  for (const Explanation& explain : explanations()) {
    for (std::size_t rank = 0; rank < workers.size(); ++rank) {
      if (auto error = explain(workers[rank], "worker " + std::to_string(rank))) return *std::move(error);
    }
  }
  return {ErrorCode::kInternal, "the run ended for no reason that a worker told", "please report it"};
}

}  // namespace everstep::launcher
