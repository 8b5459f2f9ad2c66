#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Why calls of a transport fail: something ended it, or somebody who is not needed died, which only interrupts it (see
// Transport::need_only and go_on). The first of each stays, and who was lost first. Not thread-safe.
class TransportFailure {
 public:
  void need_only(std::vector<int> peers) { needed_ = std::move(peers); }
  const std::vector<int>& needed() const { return needed_; }  // empty: all
  bool needs(int peer) const {
    return needed_.empty() || std::find(needed_.begin(), needed_.end(), peer) != needed_.end();
  }

  void end(Error error, std::optional<LostPeer> lost) {
    if (error_) return;
    error_ = std::move(error);
    if (!lost_) lost_ = lost;
  }
  void interrupt(Error error, const LostPeer& lost) {
    if (interruption_ || error_) return;
    interruption_ = std::move(error);
    lost_ = lost;
  }
  void go_on() { goes_on_ = true; }

  const std::optional<Error>& ended() const { return error_; }
  bool is_interrupted() const { return interruption_.has_value(); }
  bool goes_on() const { return goes_on_; }
  const std::optional<LostPeer>& lost() const { return lost_; }

  // Why a call that concerns this peer fails; nullptr: it does not.
  const Error* with(int peer) const {
    if (error_) return &*error_;
    return interruption_ && (!goes_on_ || !needs(peer)) ? &*interruption_ : nullptr;
  }
  Status outcome(int self) const {
    const Error* error = with(self);
    return error != nullptr ? Status(*error) : Status();
  }

 private:
  std::optional<Error> error_;
  std::optional<Error> interruption_;
  std::optional<LostPeer> lost_;
  std::vector<int> needed_;
  bool goes_on_ = false;
};

}  // namespace everstep::trainer
