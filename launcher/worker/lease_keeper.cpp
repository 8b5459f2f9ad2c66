#include "launcher/worker/lease_keeper.h"

#include <algorithm>
#include <utility>

namespace everstep::launcher {
namespace {

using State = LeaseNews::State;

// After a try that failed, and while renewing is withheld: a lease must not be lost to a short trouble.
Tick short_pause(Tick ttl) { return std::min(ttl / 12, kTicksPerSecond / 5); }

}  // namespace

LeaseKeeper::LeaseKeeper(elastic::KvStore& store, LeaseKeeperOptions options)
    : store_(store), options_(std::move(options)), ttl_(options_.ttl) {
  EVERSTEP_CHECK(options_.ttl > 0 && options_.may_renew && options_.on_news, "a lease has a TTL and somebody to tell");
  news_.last_renewed = options_.granted;
  thread_ = std::thread([this] { run(); });
}

LeaseKeeper::~LeaseKeeper() {
  closing_.ring();
  thread_.join();
}

void LeaseKeeper::run() {
  Tick next = news_.last_renewed + ttl_ / 3;
  while (news_.state != State::kGone && !closing_.wait_until(next)) {
    look_at_the_clock();
    next = try_to_renew() ? news_.last_renewed + ttl_ / 3 : boot_now() + short_pause(ttl_);
  }
}

// Before a request that may take long, and whose answer an old server can get wrong for a lease that ran out.
void LeaseKeeper::look_at_the_clock() {
  if (news_.state == State::kHeld && boot_now() >= news_.last_renewed + ttl_) tell(State::kOverdue);
}

bool LeaseKeeper::try_to_renew() {
  news_.withheld = !options_.may_renew();
  if (news_.withheld) {
    news_.error.reset();
    tell(news_.state);
    return false;
  }
  const Tick asked = boot_now();
  const auto left = store_.renew(options_.lease, kLongestTry);
  if (left) {
    // What is left counts from when the server answered, which was after it was asked.
    ttl_ = std::min(options_.ttl, left->count() * kTicksPerSecond);
    news_.last_renewed = asked;
    news_.error.reset();
    tell(State::kHeld);
    return true;
  }
  news_.error = left.error();
  tell(left.error().code == ErrorCode::kNotFound ? State::kGone : news_.state);
  return false;
}

void LeaseKeeper::tell(State state) {
  news_.state = state;
  options_.on_news(news_);
}

}  // namespace everstep::launcher
