#include "trainer/update/piece_transfer.h"

#include <algorithm>
#include <utility>

namespace everstep::trainer {
namespace {

// One piece being summed, one arriving.
constexpr int kStagingBuffers = 2;

// Enough for a receiver to sum most of them while others are on their way.
constexpr std::size_t kPieces = 8;

FrameHeader piece_header(FrameHeader header, std::size_t number, std::size_t bytes) {
  header.piece = static_cast<std::int32_t>(number);
  header.length = bytes;
  return header;
}

}  // namespace

std::size_t piece_bytes(std::size_t whole) {
  return std::clamp(whole / kPieces / kSmallestPiece * kSmallestPiece, kSmallestPiece, kLargestPiece);
}

void send_in_pieces(Transport& transport, int to, FrameHeader header, const Buffer& whole, Channel channel) {
  const std::size_t most = piece_bytes(whole.size);
  for (std::size_t offset = 0; offset < whole.size; offset += most) {
    const std::size_t bytes = std::min(most, whole.size - offset);
    transport.send(to, channel, piece_header(header, offset / most, bytes), whole.part(offset, bytes));
  }
}

void fit_staging(std::vector<Buffer>& staging, DeviceMemory& memory, std::size_t whole) {
  staging.resize(kStagingBuffers);
  for (Buffer& each : staging) {
    if (each.size < piece_bytes(whole)) each = memory.allocate_scratch(piece_bytes(whole));
  }
}

PieceReceiver::PieceReceiver(Transport& transport, int from, const FrameHeader& header, Buffer target, Channel channel)
    : transport_(transport),
      from_(from),
      header_(header),
      target_(std::move(target)),
      channel_(channel),
      memory_(host_memory()) {
  post_ahead();
}

PieceReceiver::PieceReceiver(Transport& transport, int from, const FrameHeader& header, Buffer target,
                             Accumulation add_as, Channel channel, DeviceMemory& memory,
                             const std::vector<Buffer>& staging)
    : transport_(transport),
      from_(from),
      header_(header),
      target_(std::move(target)),
      add_as_(add_as),
      channel_(channel),
      memory_(memory),
      free_staging_(staging.begin(), staging.end()) {
  post_ahead();
}

void PieceReceiver::post_ahead() {
  const std::size_t most = piece_bytes(target_.size);
  while (posted_bytes_ < target_.size && (!add_as_ || !free_staging_.empty())) {
    const std::size_t bytes = std::min(most, target_.size - posted_bytes_);
    const Buffer target = target_.part(posted_bytes_, bytes);
    Piece piece{0, {}, target, target};
    if (add_as_) {
      piece.staging = std::move(free_staging_.front());
      piece.arrives_in = piece.staging.part(0, bytes);
      free_staging_.pop_front();
    }
    const FrameHeader expected = piece_header(header_, posted_bytes_ / most, bytes);
    piece.receive = transport_.post_receive(from_, channel_, expected, piece.arrives_in);
    posted_.push_back(std::move(piece));
    posted_bytes_ += bytes;
  }
}

Status PieceReceiver::take_front(std::chrono::milliseconds timeout) {
  Piece piece = std::move(posted_.front());
  posted_.pop_front();
  EVERSTEP_TRY(transport_.wait(piece.receive, timeout));
  if (add_as_) {
    memory_.add_sums(*add_as_, piece.target, piece.arrives_in);
    free_staging_.push_back(std::move(piece.staging));
    post_ahead();
  }
  return {};
}

Result<bool> PieceReceiver::advance() {
  while (!posted_.empty() && transport_.ready(posted_.front().receive)) {
    EVERSTEP_TRY(take_front(std::chrono::milliseconds(0)));
  }
  return posted_.empty();
}

Status PieceReceiver::finish(std::chrono::milliseconds timeout) {
  while (!posted_.empty()) EVERSTEP_TRY(take_front(timeout));
  return {};
}

}  // namespace everstep::trainer
