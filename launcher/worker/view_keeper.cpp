#include "launcher/worker/view_keeper.h"

#include <chrono>
#include <utility>

#include "launcher/cli/boot_clock.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kCallDeadline{1000};
constexpr Tick kListEvery = 10 * kTicksPerSecond;
constexpr Tick kPauseAfterFailure = kTicksPerSecond / 2;  // the loop has other things to do while the store is away

}  // namespace

ViewKeeper::ViewKeeper(elastic::KvStore& store, std::string prefix, const std::function<void()>& on_news)
    : store_(store), prefix_(std::move(prefix)) {
  elastic::WatchSink sink;
  sink.on_events = [this, on_news](const std::vector<elastic::WatchEvent>& events) {
    {
      const std::scoped_lock lock(mutex_);
      events_.insert(events_.end(), events.begin(), events.end());
    }
    on_news();
  };
  sink.on_gap = [this, on_news] {
    distrust();
    on_news();
  };
  watch_ = store_.watch(prefix_, std::move(sink));
}

void ViewKeeper::distrust() {
  const std::scoped_lock lock(mutex_);
  has_gap_ = true;
}

Result<bool> ViewKeeper::refresh(Tick now) {
  std::vector<elastic::WatchEvent> events;
  bool has_gap = false;
  {
    const std::scoped_lock lock(mutex_);
    events = std::exchange(events_, {});
    has_gap = std::exchange(has_gap_, false);
  }
  const bool changed = view_.apply(events);
  if (!has_gap && now - listed_ < kListEvery) return changed;
  const auto listed = now < pause_until_ ? Result<bool>(Error{ErrorCode::kUnavailable, "", ""}) : list(now);
  if (listed) return changed || *listed;
  if (listed.error().code == ErrorCode::kDataLoss) return listed.error();
  distrust();
  return changed;
}

Result<bool> ViewKeeper::list(Tick now) {
  auto reply = store_.transact({{}, {elastic::list(prefix_)}}, kCallDeadline);
  if (!reply) {
    pause_until_ = boot_now() + kPauseAfterFailure;
    return reply.error();
  }
  listed_ = now;
  return view_.replace(std::move(reply->reads[0]), reply->revision, std::move(reply->forged));
}

}  // namespace everstep::launcher
