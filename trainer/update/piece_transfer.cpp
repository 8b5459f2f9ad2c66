#include "trainer/update/piece_transfer.h"

#include <algorithm>
#include <utility>

namespace everstep::trainer {
namespace {

// One piece being summed, one arriving.
constexpr int kStagingBuffers = 2;

FrameHeader piece_header(FrameHeader header, std::size_t offset, std::size_t bytes) {
  header.piece = static_cast<std::int32_t>(offset / kPieceBytes);
  header.length = bytes;
  return header;
}

}  // namespace

void send_in_pieces(Transport& transport, int to, FrameHeader header, const Buffer& whole, Channel channel) {
  for (std::size_t offset = 0; offset < whole.size; offset += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, whole.size - offset);
    transport.send(to, channel, piece_header(header, offset, bytes), whole.part(offset, bytes));
  }
}

std::vector<Buffer> allocate_staging(DeviceMemory& memory) {
  std::vector<Buffer> staging;
  for (int i = 0; i < kStagingBuffers; ++i) staging.push_back(memory.allocate_scratch(kPieceBytes));
  return staging;
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
  while (posted_bytes_ < target_.size && (!add_as_ || !free_staging_.empty())) {
    const std::size_t bytes = std::min(kPieceBytes, target_.size - posted_bytes_);
    Piece piece{0, {}, target_.part(posted_bytes_, bytes)};
    piece.arrives_in = piece.target;
    if (add_as_) {
      piece.arrives_in = free_staging_.front().part(0, bytes);
      free_staging_.pop_front();
    }
    const FrameHeader expected = piece_header(header_, posted_bytes_, bytes);
    piece.receive = transport_.post_receive(from_, channel_, expected, piece.arrives_in);
    posted_.push_back(std::move(piece));
    posted_bytes_ += bytes;
  }
}

Status PieceReceiver::take_front(std::chrono::milliseconds timeout) {
  const Piece piece = std::move(posted_.front());
  posted_.pop_front();
  EVERSTEP_TRY(transport_.wait(piece.receive, timeout));
  if (add_as_) {
    memory_.add_sums(*add_as_, piece.target, piece.arrives_in);
    free_staging_.push_back(piece.arrives_in.part(0, kPieceBytes));
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
