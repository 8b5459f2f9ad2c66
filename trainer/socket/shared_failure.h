#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/wire/transport_failure.h"

namespace everstep::trainer {

// A TransportFailure that two threads look at. Thread-safe.
class SharedFailure {
  template <typename Look>
  auto look(Look take) const {
    const std::lock_guard lock(mutex_);
    return take(failure_);
  }

 public:
  bool has_ended() const {
    return look([](const auto& failure) { return failure.ended().has_value(); });
  }
  bool goes_on() const {
    return look([](const auto& failure) { return failure.goes_on(); });
  }
  std::optional<LostPeer> lost() const {
    return look([](const auto& failure) { return failure.lost(); });
  }
  Status outcome(int self) const {
    return look([&](const auto& failure) { return failure.outcome(self); });
  }

  // Why a call that concerns this peer fails, if it does.
  std::optional<Error> with(int peer) const {
    return look([&](const auto& failure) {
      const Error* const error = failure.with(peer);
      return error != nullptr ? std::optional(*error) : std::nullopt;
    });
  }

  // Frames for the others are dropped.
  bool takes_frames_for(int peer) const {
    return look(
        [&](const auto& failure) { return !failure.ended() && (!failure.is_interrupted() || failure.needs(peer)); });
  }
  // Until they have left.
  bool waits_for_frames_to(int peer) const {
    return look([&](const auto& failure) { return !failure.goes_on() || failure.needs(peer); });
  }

  void need_only(const std::vector<int>& peers) {
    const std::lock_guard lock(mutex_);
    failure_.need_only(peers);
  }
  void go_on() {
    const std::lock_guard lock(mutex_);
    failure_.go_on();
  }

  void end(Error error, std::optional<LostPeer> lost) {
    const std::lock_guard lock(mutex_);
    failure_.end(std::move(error), lost);
  }

  // Somebody was lost: ends it if `is_needed` says so, and only interrupts it otherwise.
  template <typename IsNeeded>
  void lose(const Error& error, const LostPeer& lost, IsNeeded is_needed) {
    const std::lock_guard lock(mutex_);
    is_needed(failure_) ? failure_.end(error, lost) : failure_.interrupt(error, lost);
  }

 private:
  mutable std::mutex mutex_;
  TransportFailure failure_;
};

}  // namespace everstep::trainer
