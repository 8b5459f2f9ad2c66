#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "elastic/brain/decision.h"
#include "elastic/view.h"
#include "launcher/worker/background_threads.h"
#include "launcher/worker/worker_device.h"
#include "trainer/wire/peer_connector.h"

namespace everstep::launcher {

// Connects to the members of generations to come on threads of their own, so that the training of the present one does
// not wait.
class RosterConnector {
 public:
  using Done = std::function<void(elastic::AgentEvent)>;  // Connected or ConnectFailed, from another thread

  RosterConnector(trainer::PeerConnector& connector, const WorkerDevice& device, elastic::Keys keys,
                  std::uint64_t lineage, WorkerId self, Done done);
  RosterConnector(const RosterConnector&) = delete;
  RosterConnector& operator=(const RosterConnector&) = delete;
  ~RosterConnector();

  // Addresses are looked up in the view. This worker must be one of the roster's connected().
  void connect(const elastic::RosterRecord& roster, const elastic::View& view);

  // Ends a try, or throws away what came of it. Fine for an unknown one.
  void drop(const elastic::Attempt& attempt);

  // What came of a try that was told Connected; once.
  struct Connection {
    trainer::PeerConnection peers;
    WorkerDevice::Links links;  // between devices; nothing: there are none
  };
  std::optional<Connection> take(const elastic::Attempt& attempt);

 private:
  void run(const elastic::RosterRecord& roster, const trainer::PeerRoster& peers);

  void fail(const elastic::Attempt& attempt, const trainer::PeerRoster& peers, const Error& error,
            const std::optional<trainer::LostPeer>& lost);
  bool is_open(const elastic::Attempt& attempt);
  std::set<int> unreachable_of(const trainer::PeerRoster& peers);

  trainer::PeerConnector& connector_;
  const WorkerDevice& device_;
  const elastic::Keys keys_;
  const std::uint64_t lineage_;
  const WorkerId self_;
  const Done done_;

  std::mutex mutex_;
  std::set<WorkerId> unreachable_;                               // by NCCL: trying again would hold up every generation
  std::map<elastic::Attempt, std::optional<Connection>> tries_;  // nothing: under way
  BackgroundThreads threads_;                                    // last, so that they end first
};

}  // namespace everstep::launcher
