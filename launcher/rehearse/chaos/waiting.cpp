#include "launcher/rehearse/chaos/waiting.h"

#include <algorithm>
#include <csignal>
#include <thread>

namespace everstep::launcher::chaos {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{10};

}  // namespace

Result<bool> Waiting::becomes_true(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (!condition()) {
    EVERSTEP_TRY(check_signals());
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

Status Waiting::sleep(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    EVERSTEP_TRY(check_signals());
    std::this_thread::sleep_for(std::min<Clock::duration>(kLook, end - Clock::now()));
  }
  return {};
}

Status Waiting::check_signals() {
  while (const auto signal = signals_.next()) {
    if (*signal != SIGCHLD) return Error{ErrorCode::kCancelled, "ended by " + signal_name(*signal), ""};
  }
  return {};
}

}  // namespace everstep::launcher::chaos
