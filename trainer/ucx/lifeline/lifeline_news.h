#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace everstep::trainer {

// Small talk between the workers of a connection, beside their frames. A worker that cannot renew its lease learns so
// whether the others can, and thus whether the store is down or only its own way to it. Thread-safe.
class LifelineNews {
 public:
  virtual ~LifelineNews() = default;

  // Tells all peers that this worker could renew its lease just now.
  virtual void tell_renewed() = 0;

  // When this worker last heard that from any peer.
  virtual std::optional<std::chrono::steady_clock::time_point> peer_renewed_at() const = 0;

  // All workers that are known to have died by now, ascending; also after the transport has ended because of one.
  virtual std::vector<int> dead() = 0;
};

}  // namespace everstep::trainer
