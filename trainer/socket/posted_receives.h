#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "trainer/socket/channel_link.h"

namespace everstep::trainer {

// The receives that were posted and not waited for, by name. Thread-safe.
class PostedReceives {
 public:
  ReceiveId add(std::shared_ptr<Posted> posted) {
    const std::lock_guard lock(mutex_);
    posted_.emplace(next_, std::move(posted));
    return next_++;
  }

  std::shared_ptr<Posted> find(ReceiveId receive) const {
    const std::lock_guard lock(mutex_);
    const auto found = posted_.find(receive);
    EVERSTEP_CHECK(found != posted_.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  void forget(ReceiveId receive) {
    const std::lock_guard lock(mutex_);
    posted_.erase(receive);
  }

 private:
  mutable std::mutex mutex_;
  std::map<ReceiveId, std::shared_ptr<Posted>> posted_;
  ReceiveId next_ = 1;
};

}  // namespace everstep::trainer
