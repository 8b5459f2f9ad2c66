#include "elastic/sim/event_queue.h"

#include <algorithm>
#include <utility>

namespace everstep::elastic::sim {

void EventQueue::at(Tick when, std::function<void()> action) {
  queue_.push({std::max(when, now_), ++asked_, std::move(action)});
}

bool EventQueue::step() {
  if (queue_.empty()) return false;
  // The queue hands out constant references only; the event is gone right after.
  std::function<void()> action = std::move(const_cast<Event&>(queue_.top()).action);  // NOLINT
  now_ = queue_.top().when;
  queue_.pop();
  ++events_;
  action();
  return true;
}

}  // namespace everstep::elastic::sim
