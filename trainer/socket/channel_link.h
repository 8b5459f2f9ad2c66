#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/wire/frame.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// A frame that is waited for. The link writes all but `complete` only before that is set.
struct Posted {
  int from = 0;
  Channel channel = Channel::kTensors;
  FrameHeader expected;
  Buffer into;
  FrameHeader came{};
  std::atomic<bool> complete{false};

  Error late_after(std::chrono::milliseconds time) const {
    return {ErrorCode::kDeadlineExceeded,
            "the " + to_string(expected) + " did not come from worker " + std::to_string(from) + " within " +
                std::to_string(time.count()) + " ms",
            "is that worker stopped or overloaded?"};
  }
};

// Both directions of one channel with one peer: frames that wait to leave, and receives that wait for theirs. The
// header and the payload of a frame leave with one call; the reader reads straight into the posted buffer. While
// nothing is posted, nothing is read, and the kernel holds the sender back.
//
// Whoever holds `mutex` may move frames: the caller of the transport in send(), post_receive() and wait(), the service
// thread in between. Each call moves no more than quantum() bytes unless told, so that nobody waits long for the mutex,
// nor another channel for the thread.
class ChannelLink {
 public:
  // `name` is what the events of `service` carry.
  ChannelLink(std::unique_ptr<ByteStream> stream, const FileDescriptor& service, std::uint64_t name);

  std::mutex mutex;  // guards all below

  enum class Move : std::uint8_t {
    kIdle,  // nothing is left to move
    kMore,  // call again
    kWait,  // for an event
    kOver,  // that direction is closed for good
  };

  void queue(const FrameHeader& header, Buffer payload);
  Move push(std::size_t limit);
  bool has_output() const { return !out_.empty() || stream_->has_unsent(); }

  void post(std::shared_ptr<Posted> posted) { posted_.push_back(std::move(posted)); }
  // The error is that of a frame which is not the expected one.
  Result<Move> pull(std::size_t limit);

  // Some 30 us for either kind of stream.
  std::size_t quantum() const { return stream_->encrypts() ? 64 << 10 : 256 << 10; }

  // The service thread leaves reading to the caller meanwhile.
  void let_caller_read(bool caller_reads) { caller_reads_ = caller_reads; }
  bool service_reads() const { return !caller_reads_ && !posted_.empty() && !nothing_comes_; }

  // Whether the service thread could read what no event shows, since the stream has it already.
  bool has_hidden_input() const { return service_reads() && stream_->has_unread(); }

  // Asks for the next event that the service thread has to act on; none if there is nothing to do. Each comes once.
  void arm();
  void disarmed() { armed_ = 0; }  // an event came

  std::uint64_t name() const { return name_; }
  int descriptor() const { return stream_->descriptor(); }
  bool drops_output() const { return nothing_leaves_ && has_output(); }
  bool encrypts() const { return stream_->encrypts(); }
  std::unique_ptr<ByteStream> take_stream() { return std::move(stream_); }

 private:
  struct Outgoing {
    FrameBytes header;
    Buffer payload;
    std::size_t sent = 0;
  };

  Status took(std::size_t bytes);

  std::unique_ptr<ByteStream> stream_;
  const int service_;
  const std::uint64_t name_;
  std::deque<Outgoing> out_;
  std::deque<std::shared_ptr<Posted>> posted_;
  FrameBytes header_{};
  std::size_t received_ = 0;  // of the first posted frame, header included
  bool caller_reads_ = false;
  bool nothing_comes_ = false;   // any more that could be used; what had come before was read
  bool nothing_leaves_ = false;  // any more: the other side does not read
  std::uint32_t armed_ = 0;
};

}  // namespace everstep::trainer
