#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace everstep::trainer {

// Where the first thread that comes by waits for the test.
class Stop {
 public:
  void arm() {
    const std::lock_guard lock(mutex_);
    is_armed_ = true;
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (!std::exchange(is_armed_, false)) return;
    is_reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_go_; });
  }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    may_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_armed_ = false;
  bool is_reached_ = false;
  bool may_go_ = false;
};

}  // namespace everstep::trainer
