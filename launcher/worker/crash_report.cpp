#include "launcher/worker/crash_report.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstring>
#include <span>
#include <string_view>

#include <unistd.h>

#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/log_time.h"
#include "launcher/cli/signal_watch.h"
#include "scheduler/op_text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERSTEP_SANITIZED 1
#else
#define EVERSTEP_SANITIZED 0
#endif

namespace everstep::launcher {
namespace {

constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::string_view kEvent = " event=crashed signal=SIG";

// A handler takes no argument. Written by threads that work, read by one that does not any more.
struct Scene {
  std::array<char, 64> worker{};
  std::atomic<const trainer::FlightRecorder*> recorder{nullptr};
  std::atomic<std::int64_t> generation{0};
};
Scene scene;                   // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic_flag has_crashed;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Text without memory that somebody has to give.
class FixedLine {
 public:
  FixedLine& add(std::string_view text) {
    const std::size_t taken = std::min(text.size(), room_.size() - size_);
    std::memcpy(room_.data() + size_, text.data(), taken);
    size_ += taken;
    return *this;
  }
  FixedLine& add(std::int64_t number) {
    std::array<char, 24> digits{};
    return add({digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr});
  }
  std::string_view text() const { return {room_.data(), size_}; }

 private:
  std::array<char, 512> room_{};
  std::size_t size_ = 0;
};

void add_op(FixedLine& line, const trainer::OpRecord& record) {
  std::array<char, scheduler::kLongestOpText> room{};
  line.add(" step=").add(record.op.window + 1).add(" op=").add(scheduler::write_text(record.op, room));
  line.add(" op_is=").add(record.end != 0 ? "done" : record.started != 0 ? "running" : "waiting");
}

void write_report(int signal) {
  constexpr Tick kTicksPerMs = kTicksPerSecond / 1000;
  const Tick now = monotonic_now() / kTicksPerMs;
  FixedLine line;
  // Digits behind the point as in every other line of the log.
  std::array<char, kLogTimeSize> time{};
  line.add(write_log_time(wall_clock_ms(), time));
  line.add("t=").add(now / 1000).add(".").add(now % 1000 / 100).add(now % 100 / 10).add(now % 10);
  line.add(kEvent).add(::sigabbrev_np(signal)).add(" worker=").add(scene.worker.data()).add(" pid=").add(::getpid());
  line.add(" generation=").add(scene.generation);
  const trainer::FlightRecorder* recorder = scene.recorder;
  if (const trainer::OpRecord* newest = recorder == nullptr ? nullptr : recorder->newest()) add_op(line, *newest);
  line.add("\n");
  // What cannot be written is lost, like everything else that this process has.
  if (::write(STDERR_FILENO, line.text().data(), line.text().size()) < 0) return;
}

// Only calls that are safe in a handler, and no lock: the thread may have been in the middle of malloc.
void on_crash(int signal, siginfo_t* info, void* /*context*/) {
  if (!has_crashed.test_and_set()) write_report(signal);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  // An instruction that failed fails again, which tells a debugger where; a signal that was sent is gone.
  if (info->si_code <= 0) ::raise(signal);
}

std::string field(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + name.size();
  return std::string(line.substr(begin, line.find_first_of(" \n", begin) - begin));
}

}  // namespace

void report_crashes() {
  if (EVERSTEP_SANITIZED != 0) return;
  for (const int signal : kCrashes) {
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(signal, &action, nullptr);
  }
}

void set_crash_scene(const CrashScene& here) {
  scene.recorder = here.recorder;
  scene.worker = {};
  here.worker.copy(scene.worker.data(), scene.worker.size() - 1);
}

void set_crash_generation(Generation generation) { scene.generation = generation.value; }

std::optional<std::string> crash_told_in(const std::string& log_path, int signal) {
  constexpr std::size_t kMostLog = std::size_t{1} << 28;
  const auto log = read_file(log_path, kMostLog);
  const std::size_t at = log ? log->rfind(kEvent) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::string line = log->substr(at, log->find('\n', at) - at);
  if (field(line, " signal=") != signal_name(signal)) return std::nullopt;
  const std::string op = field(line, " op=");
  return "generation " + field(line, " generation=") +
         (op.empty() ? "" : " at step " + field(line, " step=") + " (" + op + " " + field(line, " op_is=") + ")");
}

}  // namespace everstep::launcher
