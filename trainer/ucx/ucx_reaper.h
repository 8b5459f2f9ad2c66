#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/ucx/lifeline/lifelines.h"
#include "trainer/ucx/ucx_engine.h"

namespace everstep::trainer {

// What is left of a transport. Peers may still read or write its buffers, and its engine may break theirs if it goes
// before they have stopped to use it.
struct RetiredTransport {
  std::shared_ptr<void> remains;  // the engine and all buffers it may touch
  std::shared_ptr<Lifelines> lifelines;
  bool has_left = false;  // else nobody knows when peers have left: kept for good
};

// Destroys transports in a thread of its own, each when all its peers have left or are dead.
class UcxReaper {
 public:
  UcxReaper();
  ~UcxReaper();  // keeps what cannot be destroyed safely

  UcxReaper(const UcxReaper&) = delete;
  UcxReaper& operator=(const UcxReaper&) = delete;

  void take(RetiredTransport retired);

  // For an engine that nobody will use, but whose address peers may have got: a peer on this host that tries to reach
  // an engine that is gone does not survive it (UCX 1.13.1 asserts when a connection is refused at once). Peers look
  // whether all are still there right before they connect, so it need not be kept long.
  void keep_reachable(std::unique_ptr<UcxEngine> engine);

  // How many wait for their peers.
  std::size_t waiting() const;

 private:
  struct UnusedEngine {
    std::unique_ptr<UcxEngine> engine;
    std::chrono::steady_clock::time_point until;
  };
  struct Rubbish {
    std::vector<RetiredTransport> transports;
    std::vector<UnusedEngine> engines;

    bool empty() const { return transports.empty() && engines.empty(); }
  };

  void serve();
  Rubbish take_rubbish();

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<RetiredTransport> waiting_;
  std::vector<UnusedEngine> reachable_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace everstep::trainer
