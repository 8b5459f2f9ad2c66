#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

namespace everstep::trainer {

// Links that the service thread has to look at although no event names them. Thread-safe.
class HandedOver {
 public:
  void add(std::uint64_t link) {
    const std::lock_guard lock(mutex_);
    links_.insert(link);
  }
  std::set<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(links_, {});
  }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> links_;
};

}  // namespace everstep::trainer
