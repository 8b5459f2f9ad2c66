#include "launcher/supervise/restart_pause.h"

#include <algorithm>

#include <sys/wait.h>

#include "launcher/cli/exit_code.h"
#include "launcher/cli/signal_watch.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::seconds kLongLife{60};

}  // namespace

std::chrono::milliseconds RestartPause::after_life_of(std::chrono::nanoseconds life) {
  next_ = life >= kLongLife ? first_ : std::clamp(2 * next_, first_, longest_);
  return next_;
}

bool is_worth_a_restart(const WorkerFate& fate) {
  if (!fate.wait_status || !WIFEXITED(*fate.wait_status)) return true;
  const auto code = static_cast<ExitCode>(WEXITSTATUS(*fate.wait_status));
  // Damage does not go away, and another process would not know what this one has seen.
  return code != ExitCode::kUsage && code != ExitCode::kConfiguration && code != ExitCode::kDamagedCheckpoint;
}

void describe_end(int wait_status, LogLine& event) {
  if (WIFSIGNALED(wait_status)) {
    event.add("signal", signal_name(WTERMSIG(wait_status)));
  } else {
    event.add("exit", WEXITSTATUS(wait_status));
  }
}

}  // namespace everstep::launcher
