#include "trainer/socket/log_hook.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "base/log_line.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAtOnce = 20;
constexpr std::chrono::seconds kOneEvery{5};

class LimitedLog {
 public:
  explicit LimitedLog(LogHook log) : log_(std::move(log)) {}

  void tell(const std::string& line) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const auto earned = (now - counted_) / kOneEvery;
    counted_ += earned * kOneEvery;
    allowed_ = static_cast<int>(std::min<std::int64_t>(kAtOnce, allowed_ + earned));
    if (allowed_ == 0) {
      ++kept_back_;
      return;
    }
    --allowed_;
    if (kept_back_ > 0) log_(LogLine("lines_kept_back").add("count", std::exchange(kept_back_, 0)).text());
    log_(line);
  }

 private:
  const LogHook log_;
  std::mutex mutex_;  // guards all below
  Clock::time_point counted_ = Clock::now();
  int allowed_ = kAtOnce;
  int kept_back_ = 0;
};

}  // namespace

LogHook limit_rate(LogHook log) {
  if (!log) return log;
  return [limited = std::make_shared<LimitedLog>(std::move(log))](const std::string& line) { limited->tell(line); };
}

}  // namespace everstep::trainer
