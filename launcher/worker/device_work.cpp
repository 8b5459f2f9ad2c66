#include "launcher/worker/device_work.h"

#include <algorithm>

namespace everstep::launcher {

void DeviceWork::given(Work kind, const trainer::Mark& mark) {
  const std::scoped_lock lock(mutex_);
  const Queue& compute = queue_of(Work::kCompute);
  const std::int64_t after = kind == Work::kCompute ? 0 : compute.passed + std::ssize(compute.pieces);
  queue_of(kind).pieces.push_back({mark, after});
  look(now_());
}

void DeviceWork::forget() {
  const std::scoped_lock lock(mutex_);
  queues_ = {};
}

Tick DeviceWork::longest_wait() {
  const std::scoped_lock lock(mutex_);
  const Tick now = now_();
  look(now);
  Tick longest = 0;
  for (const Queue& queue : queues_) {
    if (!queue.pieces.empty() && queue.pieces.front().turn)
      longest = std::max(longest, now - *queue.pieces.front().turn);
  }
  return longest;
}

void DeviceWork::look(Tick now) {
  for (Queue& queue : queues_) {
    while (!queue.pieces.empty() && has_passed(queue.pieces.front().mark)) {
      queue.pieces.pop_front();
      ++queue.passed;
    }
    if (queue.pieces.empty()) continue;
    Piece& next = queue.pieces.front();
    if (!next.turn && queue_of(Work::kCompute).passed >= next.after) next.turn = now;
  }
}

}  // namespace everstep::launcher
