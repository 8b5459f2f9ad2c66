#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "elastic/brain/decision.h"
#include "elastic/view.h"
#include "launcher/worker/background_threads.h"
#include "trainer/wire/peer_connector.h"

namespace everstep::launcher {

// Connects to the members of generations to come on threads of their own, so that the training of the present one does
// not wait.
class RosterConnector {
 public:
  using Done = std::function<void(elastic::AgentEvent)>;  // Connected or ConnectFailed, from another thread

  RosterConnector(trainer::PeerConnector& connector, elastic::Keys keys, std::uint64_t lineage, WorkerId self,
                  Done done);
  RosterConnector(const RosterConnector&) = delete;
  RosterConnector& operator=(const RosterConnector&) = delete;
  ~RosterConnector();

  // Addresses are looked up in the view. This worker must be one of the roster's connected().
  void connect(const elastic::RosterRecord& roster, const elastic::View& view);

  // Ends a try, or throws away what came of it. Fine for an unknown one.
  void drop(const elastic::Attempt& attempt);

  // What came of a try that was told Connected; once.
  std::optional<trainer::PeerConnection> take(const elastic::Attempt& attempt);

 private:
  void run(const elastic::RosterRecord& roster, const trainer::PeerRoster& peers);

  trainer::PeerConnector& connector_;
  const elastic::Keys keys_;
  const std::uint64_t lineage_;
  const WorkerId self_;
  const Done done_;

  std::mutex mutex_;
  std::map<elastic::Attempt, std::optional<trainer::PeerConnection>> tries_;  // nothing: under way
  BackgroundThreads threads_;                                                 // last, so that they end first
};

}  // namespace everstep::launcher
