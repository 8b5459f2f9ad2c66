#include "trainer/ucx/ucx_reaper.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 20ms;    // between two looks for goodbyes; nobody waits for the outcome
constexpr auto kReachable = 500ms;  // much longer than from a look at the lifelines to a connection

bool everyone_left(const RetiredTransport& retired) {
  static_cast<void>(retired.lifelines->poll());  // a death is as good as a goodbye here
  return retired.lifelines->first_still_here() < 0;
}

template <typename T, typename Predicate>
std::vector<T> take_out(std::vector<T>& from, Predicate goes) {
  const auto first = std::partition(from.begin(), from.end(), [&](const T& one) { return !goes(one); });
  std::vector<T> taken(std::make_move_iterator(first), std::make_move_iterator(from.end()));
  from.erase(first, from.end());
  return taken;
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

void UcxReaper::keep_reachable(std::unique_ptr<UcxEngine> engine) {
  {
    const std::lock_guard lock(mutex_);
    reachable_.push_back({std::move(engine), std::chrono::steady_clock::now() + kReachable});
  }
  changed_.notify_all();
}

void UcxReaper::take(RetiredTransport retired) {
  if (!retired.has_left) return keep_for_good(std::move(retired));
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
    Rubbish rubbish = take_rubbish();
    if (!rubbish.empty()) {
      lock.unlock();
      rubbish = {};
      lock.lock();
    } else if (waiting_.empty() && reachable_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kInterval);
    }
  }
}

UcxReaper::Rubbish UcxReaper::take_rubbish() {
  const auto now = std::chrono::steady_clock::now();
  return {take_out(waiting_, everyone_left),
          take_out(reachable_, [&](const UnusedEngine& unused) { return now >= unused.until; })};
}

}  // namespace everstep::trainer
