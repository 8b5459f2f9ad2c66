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

  // Tells every peer that the end of this connection is no death. Who has left the transport has said so; who broke off
  // does when it is needed no more.
  virtual void say_goodbye() = 0;

  // The same before anything was done: tells every peer that this try to connect is given up. Those that are still
  // connecting give it up, too; a goodbye does not stop them, since who has nothing more to do may leave before them.
  virtual void give_up() = 0;

  // Tells all peers that this worker could renew its lease just now.
  virtual void tell_renewed() = 0;

  // When this worker last heard that from any peer.
  virtual std::optional<std::chrono::steady_clock::time_point> peer_renewed_at() const = 0;

  // All workers that are known to have died by now, ascending.
  virtual std::vector<int> dead() const = 0;

  // The same, after the transport has ended: nobody else looks for further deaths then. While it lives it must see them
  // first, since they wake it.
  virtual std::vector<int> look_for_dead() = 0;
};

}  // namespace everstep::trainer
