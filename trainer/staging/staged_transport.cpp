#include "trainer/staging/staged_transport.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "trainer/staging/sender.h"
#include "trainer/wire/wrapped_transport.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Lane = DeviceMemory::Lane;

// Receives from oneself are numbered from here on, the host's from below.
constexpr ReceiveId kOwn = ReceiveId{1} << 63;

// Copies of the owner state are large, and nobody's next op waits for them.
Lane lane_of(Channel channel) { return channel == Channel::kCopies ? Lane::kBulk : Lane::kWire; }

class StagedTransport final : public WrappedTransport {
 public:
  StagedTransport(Transport& host, DeviceMemory& memory)
      : WrappedTransport(host), host_(host), memory_(memory), wire_(host), bulk_(host) {}

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    if (payload.on_device() && to == worker()) {
      OwnFrames& own = own_[static_cast<std::size_t>(channel)];
      own.frames.emplace(own.sent++, OwnFrame{header, std::move(payload)});
      return;
    }
    Sender& sender = sender_of(channel);
    if (payload.on_device()) {
      const Buffer staged = memory_.allocate_pinned(payload.size);
      sender.add({to, channel, header, staged, memory_.copy_out(staged, payload, lane_of(channel))});
    } else if (to != worker() && sender.has_frames_for(to, channel)) {
      sender.add({to, channel, header, std::move(payload), nullptr});
    } else {
      host_.send(to, channel, header, std::move(payload));
    }
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    if (!into.on_device()) return host_.post_receive(from, channel, expected, std::move(into));
    if (from == worker()) {
      const ReceiveId id = kOwn + next_own_++;
      const std::uint64_t number = own_[static_cast<std::size_t>(channel)].posted++;
      own_receives_.emplace(id, OwnReceive{channel, number, expected, std::move(into)});
      return id;
    }
    const Buffer staged = memory_.allocate_pinned(into.size);
    const ReceiveId id = host_.post_receive(from, channel, expected, staged);
    landings_.emplace(id, Landing{staged, std::move(into)});
    return id;
  }

  bool ready(ReceiveId receive) override {
    return receive < kOwn ? host_.ready(receive) : !host_.status() || own_frames(receive).contains(own(receive).number);
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    if (receive >= kOwn) return take_own(receive);
    auto header = host_.wait(receive, timeout);
    const auto landing = landings_.find(receive);
    if (!header || landing == landings_.end()) return header;
    memory_.copy(landing->second.into, landing->second.staged);
    landed_.push_back({landing->second.staged, memory_.mark()});
    landings_.erase(landing);
    while (!landed_.empty() && has_passed(landed_.front().is_used)) landed_.pop_front();
    return header;
  }

  Status flush(std::chrono::milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(hand_out_all(host_, {&wire_, &bulk_}, deadline));
    return host_.flush(left_until(deadline));
  }

  Status close(std::chrono::milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(hand_out_all(host_, {&wire_, &bulk_}, deadline));
    return host_.close(left_until(deadline));
  }

  void leave() override {
    stop_sending();
    host_.leave();
  }

  void break_off() override {
    stop_sending();
    host_.break_off();
  }

 private:
  struct Landing {
    Buffer staged;
    Buffer into;
  };
  // Is kept until the device has read it.
  struct Landed {
    Buffer staged;
    Mark is_used;
  };
  struct OwnFrame {
    FrameHeader header;
    Buffer payload;
  };
  struct OwnReceive {
    Channel channel = Channel::kTensors;
    std::uint64_t number = 0;  // of the frame on its channel
    FrameHeader expected;
    Buffer into;
  };
  // From this worker to itself, on one channel.
  struct OwnFrames {
    std::uint64_t sent = 0;
    std::uint64_t posted = 0;
    std::map<std::uint64_t, OwnFrame> frames;  // that nobody has waited for, by number
  };

  Sender& sender_of(Channel channel) { return lane_of(channel) == Lane::kBulk ? bulk_ : wire_; }

  void stop_sending() {
    wire_.stop();
    bulk_.stop();
  }

  const OwnReceive& own(ReceiveId receive) const {
    const auto found = own_receives_.find(receive);
    EVERSTEP_CHECK(found != own_receives_.end(), "a receive is asked for that was not posted or is over");
    return found->second;
  }

  std::map<std::uint64_t, OwnFrame>& own_frames(ReceiveId receive) {
    return own_[static_cast<std::size_t>(own(receive).channel)].frames;
  }

  // Nobody but this thread could send it.
  Result<FrameHeader> take_own(ReceiveId id) {
    EVERSTEP_TRY(host_.status());
    const auto sent = own_frames(id).extract(own(id).number);
    EVERSTEP_CHECK(!sent.empty(), "a worker waits for what it has not sent to itself");
    const OwnReceive receive = std::move(own_receives_.extract(id).mapped());
    const OwnFrame& frame = sent.mapped();
    if (const Status expected = check_frame(frame.header, receive.expected); !expected) {
      host_.abort(expected.error());
      return expected.error();
    }
    memory_.copy(receive.into, frame.payload);
    return frame.header;
  }

  Transport& host_;
  DeviceMemory& memory_;
  std::map<ReceiveId, Landing> landings_;
  std::deque<Landed> landed_;
  ReceiveId next_own_ = 0;
  std::array<OwnFrames, kChannels> own_;
  std::map<ReceiveId, OwnReceive> own_receives_;
  Sender wire_;  // end first
  Sender bulk_;
};

}  // namespace

std::unique_ptr<Transport> make_staged_transport(Transport& host, DeviceMemory& memory) {
  return std::make_unique<StagedTransport>(host, memory);
}

}  // namespace everstep::trainer
