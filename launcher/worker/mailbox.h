#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

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

  // All there are, oldest first, as soon as there is one; none if none came in that time.
  std::vector<Message> take_all(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return !messages_.empty(); });
    return std::exchange(messages_, {});
  }

  // The oldest one only.
  std::optional<Message> take(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !messages_.empty(); })) return std::nullopt;
    Message message = std::move(messages_.front());
    messages_.erase(messages_.begin());
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> messages_;
};

}  // namespace everstep::launcher
