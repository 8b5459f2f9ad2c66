#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace everstep::launcher {

// How threads reach a loop that has the state: they put, it takes.
template <typename Message>
class Mailbox {
 public:
  void put(Message message) {
    {
      const std::scoped_lock lock(mutex_);
      messages_.push_back(std::move(message));
    }
    changed_.notify_one();
  }

  // The oldest message; nothing if none came in that time.
  std::optional<Message> take(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !messages_.empty(); })) return std::nullopt;
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
};

}  // namespace everstep::launcher
