#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {

// Plays NCCL and CUDA for all workers of a test, in host memory: communicators of two ranks whose sends meet receives,
// streams that run in order, events. It can be told to be slow or to fail, and it counts what is never given back.
class ScriptedNccl {
 public:
  // What to play. Set before use.
  int version = 23007;
  bool has_device = true;
  int init_polls = 0;     // a new communicator is in progress for so many questions
  bool init_ends = true;  // false: for ever
  int launch_polls = 0;   // a transfer is, before it is on the stream
  bool fail_transfers = false;
  bool abort_hangs = false;  // until let_abort_go()

  ~ScriptedNccl() { let_abort_go(); }

  NcclApi api();
  void let_abort_go();

  // Calls so far, by name and communicator: "send 1".
  std::vector<std::string> calls() const;
  int count(const std::string& name) const;
  int communicators() const;  // that exist
  int events() const;
  int streams() const;

 private:
  using Flag = std::shared_ptr<bool>;

  struct Transfer {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Flag done;
  };

  struct Pair {
    int ranks = 0;
    std::deque<Transfer> sends;
    std::deque<Transfer> receives;
  };

  struct Communicator {
    int number = 0;
    NcclUniqueId id{};
    int polls = 0;
    bool broken = false;
    bool launching = false;
  };

  struct Stream {
    Flag last;  // set when all that is on it is over
  };

  void note(const std::string& name, NcclCommunicator communicator);
  NcclOutcome init(NcclCommunicator* communicator, const NcclUniqueId& id);
  NcclOutcome state(Communicator& communicator);
  NcclOutcome transfer(bool send, std::byte* data, std::size_t bytes, Communicator& communicator, Stream& stream);
  void give_back(NcclCommunicator communicator);
  static Communicator& at(NcclCommunicator communicator) { return *static_cast<Communicator*>(communicator); }

  mutable std::mutex mutex_;
  std::condition_variable abort_may_go_;
  std::vector<std::string> calls_;
  std::map<NcclUniqueId, Pair> pairs_;
  std::map<NcclCommunicator, std::unique_ptr<Communicator>> communicators_;
  std::map<CudaStream, std::unique_ptr<Stream>> streams_;
  std::map<CudaEvent, std::unique_ptr<Flag>> events_;
  int made_ = 0;
};

}  // namespace everstep::trainer
