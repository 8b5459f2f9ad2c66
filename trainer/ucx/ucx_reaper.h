#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/ucx/lifeline/lifelines.h"

namespace everstep::trainer {

// What is left of a transport. Peers may still read or write its buffers, and its engine may break theirs if it goes
// before they have stopped to use it.
struct RetiredTransport {
  std::shared_ptr<void> remains;  // the engine and all buffers it may touch
  std::shared_ptr<Lifelines> lifelines;
  bool said_goodbye = false;  // else nobody knows when peers have left: kept for good
};

// Destroys transports in a thread of its own, each when all its peers have said goodbye or are dead.
class UcxReaper {
 public:
  UcxReaper();
  ~UcxReaper();  // keeps what cannot be destroyed safely

  UcxReaper(const UcxReaper&) = delete;
  UcxReaper& operator=(const UcxReaper&) = delete;

  void take(RetiredTransport retired);

  // How many wait for their peers.
  std::size_t waiting() const;

 private:
  void serve();
  std::vector<RetiredTransport> take_abandoned();

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<RetiredTransport> waiting_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace everstep::trainer
