#include "launcher/cli/long_work.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/quantities.h"

namespace everstep::launcher {
namespace {

constexpr Tick kBetweenLines = kTicksPerSecond / 10;

}  // namespace

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return fixed_text(size, 1) + " " + kUnits[unit];
}

std::string work_text(const std::string& what, std::uint64_t done, std::uint64_t total, double seconds) {
  const double share = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  std::string text = what + "  " + fixed_text(100 * share, 0) + " %  " + size_text(done) + " of " + size_text(total);
  if (seconds <= 0 || done == 0) return text;
  const double speed = static_cast<double>(done) / seconds;
  text += "  " + size_text(static_cast<std::uint64_t>(speed)) + "/s";
  return text + "  " + duration_text(static_cast<double>(total - std::min(done, total)) / speed) + " left";
}

LongWork::LongWork(Streams& streams, std::string what, std::uint64_t total_bytes)
    : what_(std::move(what)), total_(total_bytes), start_(monotonic_now()), shown_at_(start_), line_(streams) {}

bool LongWork::advance_to(std::uint64_t done) {
  const Tick now = monotonic_now();
  if (now - shown_at_ >= kBetweenLines) {
    shown_at_ = now;
    line_.show(work_text(what_, done, total_, static_cast<double>(now - start_) / kTicksPerSecond));
  }
  return !is_stopped();
}

bool LongWork::is_stopped() {
  while (const auto signal = signals_.next()) {
    if (*signal != SIGCHLD) stop_signal_ = signal;
  }
  return stop_signal_.has_value();
}

Error LongWork::stopped_error() const {
  return {ErrorCode::kCancelled, what_ + " was stopped by " + signal_name(stop_signal_.value_or(SIGINT)), ""};
}

}  // namespace everstep::launcher
