#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/emulated_nccl.h"
#include "tests/accelerator/world.h"
#include "trainer/nccl/nccl_api.h"

namespace everstep::accelerator {

inline constexpr std::size_t kEmulatedNameBytes = 32;  // of an id: what the socket is called

// What came with the transfers so far.
struct Heard {
  std::mutex mutex;
  World::Clocks clocks;
};

// On a device, those that nobody has ended.
using RunningTransfers = std::atomic<int>;

// One end of an emulated communicator, which is a Unix socket.
class EmulatedCommunicator {
 public:
  EmulatedCommunicator(Accelerator& accelerator, const EmulatedNcclOptions& options, RunningTransfers& on_device,
                       const trainer::NcclUniqueId& id, int rank);
  EmulatedCommunicator(const EmulatedCommunicator&) = delete;
  EmulatedCommunicator& operator=(const EmulatedCommunicator&) = delete;
  ~EmulatedCommunicator();  // ends its kernels

  void end_kernels();
  trainer::NcclOutcome revoke();
  trainer::NcclOutcome state();
  trainer::NcclOutcome transfer(bool sends, void* data, std::size_t bytes, int peer, StreamId stream);
  trainer::NcclOutcome finalize();

  const std::shared_ptr<Heard>& heard() const { return heard_; }

 private:
  void connect();
  void run(bool sends, std::byte* data, std::size_t bytes, const World::Clocks& known);
  void begin_one();
  bool is_running();
  void end_one();
  void meet(bool sends, std::size_t bytes);
  void tell(const World::Clocks& clocks);
  void hear();
  void move_number(bool sends, std::uint64_t& number);
  void move(bool sends, std::byte* at, std::size_t bytes);
  bool wait_for(short event) const;
  [[noreturn]] void wait_for_end() const;

  Accelerator& accelerator_;
  const EmulatedNcclOptions& options_;
  RunningTransfers& on_device_;
  const std::string path_;
  const int rank_;
  std::atomic<int> socket_{-1};
  std::atomic<bool> is_connected_{false};
  std::atomic<bool> is_ended_{false};
  std::atomic<bool> is_finalizing_{false};
  std::atomic<bool> is_finalized_{false};
  std::atomic<int> running_{0};
  std::mutex mutex_;
  std::string error_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
  std::optional<Event> last_;  // the newest operation
  StreamId last_stream_ = 0;
  std::thread finalizing_;
  std::thread connecting_;
};

}  // namespace everstep::accelerator
