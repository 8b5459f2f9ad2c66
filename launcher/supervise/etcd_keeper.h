#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "base/log_line.h"
#include "launcher/supervise/etcd_server.h"
#include "launcher/supervise/restart_pause.h"

namespace everstep::launcher {

// Looks after the etcd of a job: one that has died is started again on its data and its addresses, after a pause that
// grows to a few seconds while that does not help, as on a disk that is full. Used by the thread that started it.
class EtcdKeeper {
 public:
  // `on_event` is told `event=etcd_died …` with how it ended and its last words, `event=etcd_not_restarted …` likewise
  // (not again while it says the same), and `event=etcd_restarted …` when it answers.
  EtcdKeeper(EtcdServer& server, std::filesystem::path data, std::function<void(const LogLine& event)> on_event);

  // Does what is due. Waits a moment for the answer of one that was started again, and for nothing else.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kUp, kDown, kStarting };

  void take_end();
  void restart();
  void go_down(LogLine event);

  EtcdServer& server_;
  const std::filesystem::path data_;
  const std::function<void(const LogLine& event)> on_event_;
  RestartPause pause_;
  State state_ = State::kUp;
  Clock::time_point born_ = Clock::now();
  Clock::time_point died_;
  Clock::time_point restart_at_;
  std::string told_;  // of its end, last
};

}  // namespace everstep::launcher
