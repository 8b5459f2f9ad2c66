#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/nccl/nccl_device.h"

namespace everstep::trainer {

// One direction between two workers: a communicator of two ranks, 0 sends and 1 receives. It carries one transfer at a
// time, on any lane: what is queued behind a transfer that is not over could hold up a hardware queue, and with it
// whatever the peer waits for.
//
// Nothing here blocks. Not thread-safe.
class NcclLink {
 public:
  enum class End : std::uint8_t { kSending, kReceiving };

  NcclLink(NcclDevice& device, End end) : device_(device), end_(end) {}
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;
  ~NcclLink();  // ends what take() has left

  // Starts to make the communicator; the other end does the same with the same id.
  Status open(const NcclUniqueId& id);
  // Whether it is made.
  Result<bool> is_made();

  bool is_idle() const { return !flight_; }
  const std::optional<NcclFlight>& flight() const { return flight_; }

  // The first transfer, which makes NCCL connect both ends and allocate what it needs. The link is made, and idle.
  Status launch_first(const NcclLane& lane);

  // The link is made, and idle. `after`: what must be over before the transfer touches the payload; nothing: nothing.
  Status launch(Buffer payload, const NcclLane& lane, CudaEvent after);

  // Moves the transfer on: when it is over, what it used.
  Result<std::optional<NcclFlight>> advance();

  // The link is empty afterwards.
  NcclRemains take();

 private:
  Status put_on_stream(void* data, std::size_t bytes);
  Status settle(const NcclOutcome& outcome);

  NcclDevice& device_;
  const End end_;
  NcclCommunicator communicator_ = nullptr;
  bool busy_ = false;  // NCCL works on the communicator in the background: it may only be asked about that
  std::optional<NcclFlight> flight_;
};

}  // namespace everstep::trainer
