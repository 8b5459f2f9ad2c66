#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/wire/frame.h"

namespace everstep::trainer {

// Independent ordered streams between two workers, so that a tensor never waits behind a reduce, nor anything behind
// the copies that guards keep. What a group says to itself after a death elsewhere (kSurvivors) has nothing before it
// that may never come. Sums and weights of a provisional step are sent when they are there, whatever collectives are
// under way. Who waits for a frame by other means than the wire of the hosts says so beside all of them (kCredits).
enum class Channel : std::uint8_t { kTensors, kCollectives, kRecords, kCopies, kSurvivors, kProvisional, kCredits };
inline constexpr int kChannels = 7;

// Names a posted receive. Never reused within one transport.
using ReceiveId = std::uint64_t;

// The worker because of which a transport, or the try to make one, ended.
struct LostPeer {
  enum class How : std::uint8_t {
    kClosed,   // its connection closed or was refused: its process is gone
    kSilent,   // nothing came in time: nobody knows
    kRefused,  // it lives, and does not want this connection (any more)
  };

  int worker = 0;
  How how = How::kClosed;

  bool operator==(const LostPeer&) const = default;
};

// Moves frames between the workers of one generation. One thread calls; adapters may have a service thread of their
// own. Other threads may meanwhile call send() to another worker, one at a time for each peer and channel; and what
// does not wait: post_receive(), ready(), and wait() when that is ready, of receives from other workers; status(),
// lost() and go_on().
//
// Per (sender, receiver, channel) frames arrive in the order they were sent, and receives match them in the order they
// were posted. The first error (a peer died, a frame that was not the expected one, a deadline that passed, abort())
// ends the transport for good: every later call returns that error at once, nothing hangs, and the transport is thrown
// away, never reused.
//
// Errors: kUnavailable a peer died (the message names the worker) · kDeadlineExceeded nothing came in time ·
// kStaleGeneration a frame of another generation · kInternal a frame that the plan does not expect, or damaged in
// transit · kCancelled abort() was called.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int worker() const = 0;   // this one
  virtual int workers() const = 0;  // of the plan, and those behind them that only hand over state

  // Hands a frame over and returns at once; it never waits for the receiver. `header.length` must be the payload's
  // size. The transport keeps `payload` until it is delivered; the caller must not change its bytes before then.
  virtual void send(int to, Channel channel, const FrameHeader& header, Buffer payload) = 0;

  // Posts a receive of exactly `expected.length` bytes into `into`, and returns at once. A frame that is longer or is
  // not the expected one (see check_frame) is refused, and no memory is ever allocated from what a header says. Until
  // wait() returned, the bytes of `into` are undefined.
  virtual ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) = 0;

  // Whether wait() would return at once (also when it would return an error).
  virtual bool ready(ReceiveId receive) = 0;

  // The header of the received frame, whose payload is now in the buffer. Each receive is waited for once.
  virtual Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) = 0;

  // Waits until all frames handed over so far have left this worker's buffers.
  virtual Status flush(std::chrono::milliseconds timeout) = 0;

  // The error that ended the transport, if any: what a worker asks between two ops.
  virtual Status status() = 0;

  // Who is to blame for status(), if it is one of the workers.
  virtual std::optional<LostPeer> lost() const = 0;

  // From now on the death of a worker that is not among `peers` (with this one) only interrupts the transport, if no
  // other error came before: every call fails as if it had ended, but no frame between `peers` is lost, and go_on() is
  // possible. A transport that cannot do that takes no notice.
  virtual void need_only(const std::vector<int>& /*peers*/) {}

  // After an interruption: what concerns the needed peers alone works again, and a receive that failed may be waited
  // for once more; what concerns others fails as before, and their deaths are no news any more. Frames to
  // those who have left are dropped. lost() goes on to name the first. Returns the error if the transport has really
  // ended, as it does with the death of a needed peer.
  virtual Status go_on() { return status(); }

  // Ends the transport from this side: wakes waiters with kCancelled. May be called from any thread.
  virtual void abort(Error reason) = 0;

  // Says goodbye, so that peers do not take the end of this process for a death, and waits for theirs. Call it after
  // the last frame; no other call may follow.
  virtual Status close(std::chrono::milliseconds timeout) = 0;

  // Says goodbye and waits for nobody: the others go on without this worker, and fail only if they send to it. Also
  // right for a transport that has ended: without a goodbye its end counts as this worker's death. Frames that were not
  // flushed may be lost. Nothing but the destructor may follow.
  virtual void leave() = 0;

  // The same after a failure, for a worker whose state the others count on: its end is a death still, until it says
  // goodbye elsewhere (see LifelineNews), if the transport has such a place.
  virtual void break_off() { leave(); }
};

}  // namespace everstep::trainer
