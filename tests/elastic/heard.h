#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "elastic/kv_store.h"

namespace everstep::elastic {

// Keeps what a watch was told.
class Heard {
 public:
  WatchSink sink() {
    return {[this](const std::vector<WatchEvent>& more) { add(more); }, [this] { add_gap(); }};
  }

  // False: it never comes to that.
  bool waits_for(const std::function<bool(const Heard&)>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(*this); });
  }
  bool waits_for_gaps(int count) {
    return waits_for([&](const Heard& heard) { return heard.gaps >= count; });
  }
  bool waits_for_events(std::size_t count) {
    return waits_for([&](const Heard& heard) { return heard.events.size() >= count; });
  }
  int gaps_now() {
    const std::lock_guard lock(mutex_);
    return gaps;
  }

  int gaps = 0;
  bool is_gap_first = false;
  std::vector<WatchEvent> events;

 private:
  void add(const std::vector<WatchEvent>& more) {
    const std::lock_guard lock(mutex_);
    events.insert(events.end(), more.begin(), more.end());
    changed_.notify_all();
  }
  void add_gap() {
    const std::lock_guard lock(mutex_);
    if (events.empty()) is_gap_first = true;
    ++gaps;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace everstep::elastic
