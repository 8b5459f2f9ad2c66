#include "trainer/ucx/ucx_reaper.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 20ms;  // between two looks for goodbyes; nobody waits for the outcome

bool everyone_left(const RetiredTransport& retired) {
  static_cast<void>(retired.lifelines->poll());  // a death is as good as a goodbye here
  return retired.lifelines->first_still_here() < 0;
}

// Never destroyed: some descriptors and less than a megabyte, beside the buffers.
void keep_for_good(RetiredTransport retired) {
  static_cast<void>(new std::shared_ptr<void>(std::move(retired.remains)));
}

}  // namespace

UcxReaper::UcxReaper() : thread_([this] { serve(); }) {}

UcxReaper::~UcxReaper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (RetiredTransport& retired : waiting_) {
    if (!everyone_left(retired)) keep_for_good(std::move(retired));
  }
}

void UcxReaper::take(RetiredTransport retired) {
  if (!retired.said_goodbye) return keep_for_good(std::move(retired));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(retired));
  }
  changed_.notify_all();
}

std::size_t UcxReaper::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void UcxReaper::serve() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<RetiredTransport> abandoned = take_abandoned();
    if (!abandoned.empty()) {
      lock.unlock();
      abandoned.clear();
      lock.lock();
    } else if (waiting_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kInterval);
    }
  }
}

std::vector<RetiredTransport> UcxReaper::take_abandoned() {
  const auto first = std::partition(waiting_.begin(), waiting_.end(),
                                    [](const RetiredTransport& retired) { return !everyone_left(retired); });
  std::vector<RetiredTransport> abandoned(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
  waiting_.erase(first, waiting_.end());
  return abandoned;
}

}  // namespace everstep::trainer
