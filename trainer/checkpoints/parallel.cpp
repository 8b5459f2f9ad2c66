#include "trainer/checkpoints/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/checkpoints/caught.h"

namespace everstep::trainer {

int file_threads(int workers) {
  constexpr int kMost = 4;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, workers), 1, kMost);
}

Status for_each_in_parallel(std::size_t count, int threads, const std::function<Status(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  Status first;
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !has_failed; i = next++) {
      Status status = caught([&] { return task(i); });
      if (status) continue;
      const std::scoped_lock lock(mutex);
      if (!has_failed.exchange(true)) first = std::move(status);
    }
  };
  const std::size_t helper_count =
      std::min(static_cast<std::size_t>(std::max(1, threads)), std::max<std::size_t>(count, 1)) - 1;
  std::vector<std::thread> helpers;
  // This thread does what no other does.
  static_cast<void>(caught([&]() -> Status {
    helpers.reserve(helper_count);
    for (std::size_t i = 0; i < helper_count; ++i) helpers.emplace_back(work);
    return {};
  }));
  work();
  for (std::thread& helper : helpers) helper.join();
  return first;
}

}  // namespace everstep::trainer
