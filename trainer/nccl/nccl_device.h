#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {

// A stream for transfers.
struct NcclLane {
  CudaStream stream = nullptr;
  void* scratch = nullptr;  // what the first transfer of a communicator moves; other lanes have none
};
inline constexpr std::size_t kNcclScratchBytes = 512;

// What lanes are for. Sends never take those of receives: if they did, sends of all workers could hold them all, and
// each wait for a receive that finds none. First transfers have their own, since they wait for each other in an order
// of their own.
enum class NcclLaneUse : std::uint8_t { kSend, kReceive, kFirst };

// A transfer that was launched.
struct NcclFlight {
  Buffer payload{};  // none of a first transfer
  NcclLane lane;
  NcclLaneUse use = NcclLaneUse::kSend;
  CudaEvent over = nullptr;  // nothing: NCCL has not put it on the stream yet
};

// An event that is destroyed with this.
using NcclEvent = std::unique_ptr<void, std::function<void(CudaEvent)>>;

// What is left of a link that nobody uses any more.
struct NcclRemains {
  NcclCommunicator communicator = nullptr;
  std::optional<NcclFlight> flight{};
};

struct NcclDeviceOptions {
  int device = 0;
  // Of sends, and as many of receives. With the streams that compute and copy they fit into the 32 hardware queues that
  // a GPU can have; with fewer queues transfers share them, and still none waits for another one's peer.
  int lanes = 8;
  std::chrono::milliseconds abort_limit{5'000};  // for NCCL to give communicators up
  // Is told that it did not, from a thread of its own. NCCL has been seen to hang in an abort: then only the end of
  // the process frees the GPU, and peers go on as after any death.
  std::function<void(const Error&)> on_hang;
};

// NCCL and one device, as all generations of a worker process use them. Thread-safe.
class NcclDevice {
 public:
  // kNotFound: there is no such device. kUnavailable: it has no streams.
  static Result<std::shared_ptr<NcclDevice>> open(NcclApi api, NcclDeviceOptions options);

  NcclDevice(NcclApi api, NcclDeviceOptions options);
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;
  ~NcclDevice();  // when all that end() was given has ended

  const NcclApi& api() const { return api_; }

  // Each thread that calls the table does this first: CUDA remembers the device per thread.
  void enter_thread() const;

  // A lane for one transfer; nothing: not now, since all are in use or communicators are freed. All are there from the
  // beginning, but for more first transfers at once than those of one generation.
  Result<std::optional<NcclLane>> take(NcclLaneUse use);
  void give_back(NcclLaneUse use, const NcclLane& lane);

  // An event of all that is on the stream so far.
  Result<CudaEvent> event_on(CudaStream stream) const;

  // Ends communicators on a thread of its own, and gives back what their transfers hold. In order: both ends know that
  // all is over, and NCCL lets the last bytes arrive. Otherwise kernels that wait for a peer are ended, too.
  //
  // Freeing a communicator frees memory, for which a GPU may wait for all that runs on it, and hold up what it is given
  // meanwhile. Two workers that each wait for a transfer with the other would wait for ever. So it is freed when no
  // transfer is at work, and none begins until it is: first no receive is launched any more, and what peers have been
  // promised still is, so that all at work end by themselves.
  enum class How : std::uint8_t { kInOrder, kAtOnce };
  // What comes of it: an event of each transfer, for whoever goes on to use what it worked on, to wait for.
  using Ended = std::future<std::vector<NcclEvent>>;
  void end(std::vector<NcclRemains> remains, How how) { start_end(std::move(remains), how); }
  Ended end_for_use(std::vector<NcclRemains> remains) { return start_end(std::move(remains), How::kAtOnce); }

 private:
  struct Ending {
    std::vector<NcclRemains> remains;
    How how = How::kAtOnce;
    std::promise<std::vector<NcclEvent>> events{};
    std::optional<std::chrono::steady_clock::time_point> deadline{};  // of NCCL; nothing: it is not asked for anything
    bool is_over = false;
    std::thread worker{};
    std::thread watch{};
  };

  Result<NcclLane> make_lane(NcclLaneUse use) const;
  Ended start_end(std::vector<NcclRemains> remains, How how);
  void work_off(Ending& ending);
  bool finalize_all(const Ending& ending) const;
  bool revoke_all(const Ending& ending) const;
  bool wait_for_all(const Ending& ending, std::chrono::milliseconds limit) const;
  void free_all(Ending& ending, bool in_order);
  void release_all(Ending& ending);
  NcclEvent release(NcclFlight& flight);
  void watch(Ending& ending);
  void join_ended();

  const NcclApi api_;
  const NcclDeviceOptions options_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::array<std::vector<NcclLane>, 3> idle_;  // by use
  int at_work_ = 0;                            // lanes that were taken
  int wait_to_free_ = 0;                       // endings
  int to_be_ended_ = 0;                        // of the lanes at work, those that an ending which waits will end
  int freeing_ = 0;                            // endings
  std::list<Ending> endings_;
};

// As an error of transports.
Status check_nccl(const NcclOutcome& outcome, const char* what);

}  // namespace everstep::trainer
