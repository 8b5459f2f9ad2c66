#include "launcher/worker/worker_process.h"

#include <csignal>
#include <iostream>
#include <utility>

#include <malloc.h>
#include <sys/prctl.h>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/log_time.h"
#include "launcher/worker/crash_report.h"

namespace everstep::launcher {
namespace {

constexpr int kLargestKeptBlock = 32 << 20;

// A failed check ends the process and takes no argument.
LastWords last_words;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void on_check_failure(std::string_view message) {
  if (last_words.recorder != nullptr) log_recorder(*last_words.recorder);
  if (last_words.tell) last_words.tell({ErrorCode::kInternal, std::string(message), "please report it"});
}

}  // namespace

// One write, so that lines of other threads do not fall into it.
void log_event(const std::string& line) {
  std::cerr << log_time() + "t=" + fixed_text(to_seconds(monotonic_now()), 3) + " " + line + "\n" << std::flush;
}

void log_recorder(const trainer::FlightRecorder& recorder) {
  log_event(LogLine("last_ops").text() + "\n" + recorder.dump(monotonic_now()));
}

void set_last_words(LastWords words) {
  last_words = std::move(words);
  set_crash_scene({last_words.worker, last_words.recorder});
}

void prepare_worker_process() {
  // A sleep is to end when it was told to, not when it suits the kernel.
  ::prctl(PR_SET_TIMERSLACK, 1);
  // Buffers of messages come and go with every op: fresh pages for each would cost as much as copying them.
  ::mallopt(M_MMAP_THRESHOLD, kLargestKeptBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestKeptBlock);
  // One heap for all threads: each generation has threads of its own, and what they free in a heap of theirs stays
  // there, out of reach for the threads of the next.
  ::mallopt(M_ARENA_MAX, 1);
  ::signal(SIGPIPE, SIG_IGN);
  set_check_failure_hook(on_check_failure);
  report_crashes();
}

void return_free_memory() { ::malloc_trim(0); }

void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace everstep::launcher
