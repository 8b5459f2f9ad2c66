#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

namespace everstep::trainer {

// Workers of which a channel has closed. The lifeline says whether such a one died or left, and follows at once; if it
// is silent for kExplanation, the worker counts as dead. Thread-safe.
class Suspects {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kExplanation{1};

  void add(int worker) {
    const std::lock_guard lock(mutex_);
    until_.try_emplace(worker, Clock::now() + kExplanation);
  }
  void clear(int worker) {
    const std::lock_guard lock(mutex_);
    until_.erase(worker);
  }

  // Until when each of them may be explained.
  std::map<int, Clock::time_point> all() const {
    const std::lock_guard lock(mutex_);
    return until_;
  }

  // When the first of them has to be given up; nothing: there is none.
  std::optional<Clock::time_point> next() const {
    const std::lock_guard lock(mutex_);
    const auto first = std::ranges::min_element(until_, {}, [](const auto& one) { return one.second; });
    return first == until_.end() ? std::nullopt : std::optional(first->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, Clock::time_point> until_;
};

}  // namespace everstep::trainer
