#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/result.h"
#include "base/tick.h"
#include "elastic/kv_store.h"
#include "launcher/cli/boot_clock.h"

namespace everstep::launcher {

// What is known of a lease. All times are boot_now()'s.
struct LeaseNews {
  enum class State {
    kHeld,     // the store keeps it until last_renewed + TTL at least
    kOverdue,  // that time has passed: it may be gone. The keeper still tries, and may come back to kHeld
    kGone,     // the store has said so. The last word of a keeper
  };

  State state = State::kHeld;
  Tick last_renewed = 0;       // when the newest request that succeeded was sent
  bool withheld = false;       // not renewed now because may_renew says so
  std::optional<Error> error;  // of the last try, if it failed
};

struct LeaseKeeperOptions {
  elastic::LeaseId lease = 0;
  Tick ttl = 0;
  Tick granted = 0;  // boot_now() before the lease was asked for
  // Whether this process makes progress; while it does not, its lease is left to run out. Asked by the keeper's thread
  // and must not block.
  std::function<bool()> may_renew;
  // By the keeper's thread, at least every third of the TTL and at once when the state changes. Must not block.
  std::function<void(const LeaseNews&)> on_news;
};

// Renews a lease every third of its TTL, and sooner after a try that failed, on a thread that does nothing else. A
// process that was stopped or a host that slept past the TTL tells kOverdue before anything else.
class LeaseKeeper {
 public:
  static constexpr std::chrono::milliseconds kLongestTry{500};

  // The store must outlive it.
  LeaseKeeper(elastic::KvStore& store, LeaseKeeperOptions options);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  // Waits for the try at hand and for no other. Does not revoke.
  ~LeaseKeeper();

 private:
  void run();
  void look_at_the_clock();
  bool try_to_renew();
  void tell(LeaseNews::State state);

  elastic::KvStore& store_;
  const LeaseKeeperOptions options_;
  BootAlarm closing_;
  // Of the thread alone.
  LeaseNews news_;
  Tick ttl_;  // as the store granted it last
  std::thread thread_;
};

}  // namespace everstep::launcher
