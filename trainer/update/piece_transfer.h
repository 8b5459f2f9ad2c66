#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/model_config.h"
#include "trainer/update/host_memory.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Flat buffers travel in pieces, of which both ends know the size from that of the whole: small enough for a receiver
// to sum while the rest is on its way, and for a tensor that waits behind one; large enough for what each costs beside
// its bytes. Between GPUs that is a notice, a credit and two launches.
inline constexpr std::size_t kSmallestPiece = std::size_t{1} << 20;
inline constexpr std::size_t kLargestPiece = std::size_t{8} << 20;
std::size_t piece_bytes(std::size_t whole);

// Sends `whole`; `header` says what it is. Its bytes must not change before the receiver has them all.
void send_in_pieces(Transport& transport, int to, FrameHeader header, const Buffer& whole,
                    Channel channel = Channel::kCollectives);

// Where pieces arrive that are added: one is being summed while the next one arrives. Allocates what `staging` lacks
// for a buffer of that size.
void fit_staging(std::vector<Buffer>& staging, DeviceMemory& memory, std::size_t whole);

// Receives what send_in_pieces sent.
class PieceReceiver {
 public:
  // Stores the pieces in `target`.
  PieceReceiver(Transport& transport, int from, const FrameHeader& header, Buffer target,
                Channel channel = Channel::kCollectives);

  // Adds the pieces to what is in `target`, which lies in `memory`. They arrive in `staging`, which nobody else uses
  // meanwhile: see fit_staging().
  PieceReceiver(Transport& transport, int from, const FrameHeader& header, Buffer target, Accumulation add_as,
                Channel channel, DeviceMemory& memory, const std::vector<Buffer>& staging);

  // Takes what has arrived without waiting; true when it was the last piece.
  Result<bool> advance();

  // Waits for the rest, for each piece at most `timeout`.
  Status finish(std::chrono::milliseconds timeout);

 private:
  struct Piece {
    ReceiveId receive;
    Buffer staging;  // only when adding
    Buffer arrives_in;
    Buffer target;
  };

  void post_ahead();
  Status take_front(std::chrono::milliseconds timeout);

  Transport& transport_;
  int from_;
  FrameHeader header_;
  Buffer target_;
  std::optional<Accumulation> add_as_;
  Channel channel_;
  DeviceMemory& memory_;
  std::size_t posted_bytes_ = 0;
  std::deque<Piece> posted_;
  std::deque<Buffer> free_staging_;  // only when adding
};

}  // namespace everstep::trainer
