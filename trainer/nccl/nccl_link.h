#pragma once

#include <cstdint>
#include <deque>

#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {

// One direction of one channel between two workers: a communicator of two ranks (0 sends, 1 receives) on a stream of
// its own. NCCL runs the operations of a communicator one after another, and a send ends only when the other side
// receives. If links shared a communicator or a stream, a send could wait behind a receive whose sender waits for that
// very send. With a communicator per link the only order is the one both ends agree on: that of the frames on it.
//
// Nothing here blocks: advance() does what can be done now. Not thread-safe.
class NcclLink {
 public:
  enum class End : std::uint8_t { kSending, kReceiving };

  // `compute` is the stream that fills and reads the payloads.
  NcclLink(const NcclApi& api, End end, CudaStream compute);

  // Starts to make the communicator; the other end does the same with the same id.
  Status open(const NcclUniqueId& id);
  bool is_open() const { return communicator_ != nullptr; }

  // Queues a transfer; its number says which one is_over() asks for.
  std::uint64_t enqueue(Buffer payload);
  bool is_over(std::uint64_t number) const { return number < finished_; }
  bool is_idle() const { return transfers_.empty(); }

  Status advance();

  // After the last transfer: ends the communicator in agreement with the other end. True when it is over.
  Result<bool> close();

  // What has to be revoked and aborted after a failure. The link is empty afterwards, and its stream and events are
  // left to the process's end: NCCL may still use them.
  NcclCommunicator take_communicator();

 private:
  struct Transfer {
    Buffer payload;
    CudaEvent event = nullptr;  // set once NCCL has put the transfer on the stream
  };

  Status check(const NcclOutcome& outcome, const char* what) const;
  Status launch(Transfer& transfer);
  Status record(Transfer& transfer);
  Status wait_for_compute();

  const NcclApi& api_;
  End end_;
  CudaStream compute_;
  CudaStream stream_ = nullptr;
  NcclCommunicator communicator_ = nullptr;
  bool busy_ = false;  // NCCL works on the communicator in the background: it may only be asked about that
  std::deque<Transfer> transfers_;
  std::size_t launched_ = 0;  // of those; the last one may still be on its way to the stream
  std::uint64_t finished_ = 0;
  bool finalizing_ = false;
};

}  // namespace everstep::trainer
