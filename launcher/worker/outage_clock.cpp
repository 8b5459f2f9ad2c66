#include "launcher/worker/outage_clock.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace everstep::launcher {

OutageClock::OutageClock(const MembershipOptions& options)
    : limit_(std::chrono::nanoseconds(std::max(options.outage_limit, options.lease_ttl)).count()) {}

void OutageClock::failed(Tick now) {
  if (!since_) since_ = now;
  last_failure_ = now;
}

void OutageClock::set_at_end(bool is_at_end, Tick now) {
  if (!is_at_end) {
    at_end_since_.reset();
  } else if (!at_end_since_) {
    at_end_since_ = now;
  }
}

bool OutageClock::is_too_long() const {
  if (!since_) return false;
  if (last_failure_ - *since_ >= limit_) return true;
  return at_end_since_ && last_failure_ - std::max(*since_, *at_end_since_) >= std::min(limit_, kPatienceAtEnd);
}

Error OutageClock::error() const {
  const Tick away = since_ ? last_failure_ - *since_ : 0;
  return {ErrorCode::kUnavailable,
          "etcd has not answered for " + std::to_string(away / kTicksPerSecond) + " s" +
              (at_end_since_ ? "" : ", which is longer than --etcd-outage-limit"),
          "nothing can be saved without it; the checkpoints stay as they are"};
}

}  // namespace everstep::launcher
