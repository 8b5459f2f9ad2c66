#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <utility>

namespace everstep::launcher {

// Work that somebody started and does not wait for. What has ended is forgotten when the next work starts; the rest is
// waited for at the end. Used by one thread.
class BackgroundThreads {
 public:
  BackgroundThreads() = default;
  BackgroundThreads(const BackgroundThreads&) = delete;
  BackgroundThreads& operator=(const BackgroundThreads&) = delete;
  ~BackgroundThreads() {
    for (Worker& worker : workers_) worker.thread.join();
  }

  void start(std::function<void()> work) {
    workers_.remove_if([](Worker& worker) {
      if (!*worker.has_ended) return false;
      worker.thread.join();
      return true;
    });
    auto has_ended = std::make_shared<std::atomic<bool>>(false);
    workers_.push_back({std::thread([work = std::move(work), has_ended]() mutable {
                          work();
                          work = nullptr;  // what it holds goes before it counts as ended
                          *has_ended = true;
                        }),
                        has_ended});
  }

 private:
  struct Worker {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> has_ended;
  };

  std::list<Worker> workers_;
};

}  // namespace everstep::launcher
