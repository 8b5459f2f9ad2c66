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

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Lane = DeviceMemory::Lane;

// Receives from oneself are numbered from here on, the host's from below.
constexpr ReceiveId kOwn = ReceiveId{1} << 63;

// Copies of the owner state are large, and nobody's next op waits for them.
Lane lane_of(Channel channel) { return channel == Channel::kCopies ? Lane::kBulk : Lane::kWire; }

class StagedTransport final : public Transport {
 public:
  StagedTransport(Transport& host, DeviceMemory& memory) : host_(host), memory_(memory), wire_(host), bulk_(host) {}

  int worker() const override { return host_.worker(); }
  int workers() const override { return host_.workers(); }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    if (payload.on_device() && to == worker()) {
      own_sent_[static_cast<std::size_t>(channel)].push_back({header, std::move(payload)});
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
      own_posted_[static_cast<std::size_t>(channel)].push_back({id, expected, std::move(into)});
      return id;
    }
    const Buffer staged = memory_.allocate_pinned(into.size);
    const ReceiveId id = host_.post_receive(from, channel, expected, staged);
    landings_.emplace(id, Landing{staged, std::move(into)});
    return id;
  }

  bool ready(ReceiveId receive) override {
    return receive < kOwn ? host_.ready(receive) : !host_.status() || !own_sent_[own_channel(receive)].empty();
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    if (receive >= kOwn) return take_own(own_channel(receive));
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
    EVERSTEP_TRY(hand_out_all(deadline));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return host_.flush(std::max(left, std::chrono::milliseconds(0)));
  }

  Status status() override { return host_.status(); }
  std::optional<LostPeer> lost() const override { return host_.lost(); }
  void need_only(const std::vector<int>& peers) override { host_.need_only(peers); }
  Status go_on() override { return host_.go_on(); }
  void abort(Error reason) override { host_.abort(std::move(reason)); }

  Status close(std::chrono::milliseconds timeout) override {
    EVERSTEP_TRY(hand_out_all(Clock::now() + timeout));
    return host_.close(timeout);
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
    ReceiveId id = 0;
    FrameHeader expected;
    Buffer into;
  };

  Sender& sender_of(Channel channel) { return lane_of(channel) == Lane::kBulk ? bulk_ : wire_; }

  // Waits until the host's transport has all frames.
  Status hand_out_all(Clock::time_point deadline) {
    EVERSTEP_TRY(host_.status());
    if (wire_.wait_until_empty(deadline) && bulk_.wait_until_empty(deadline)) return {};
    const Error late{ErrorCode::kDeadlineExceeded, "the device has not handed out all frames in time", ""};
    host_.abort(late);
    return late;
  }

  void stop_sending() {
    wire_.stop();
    bulk_.stop();
  }

  // Of a receive that is the next one of its channel.
  std::size_t own_channel(ReceiveId receive) const {
    for (std::size_t channel = 0; channel < own_posted_.size(); ++channel) {
      if (!own_posted_[channel].empty() && own_posted_[channel].front().id == receive) return channel;
    }
    EVERSTEP_CHECK(false, "a receive is waited for that was not posted, is over, or is not the next one");
  }

  // Nobody but this thread could send it.
  Result<FrameHeader> take_own(std::size_t channel) {
    EVERSTEP_TRY(host_.status());
    const OwnReceive receive = std::move(own_posted_[channel].front());
    own_posted_[channel].pop_front();
    EVERSTEP_CHECK(!own_sent_[channel].empty(), "a worker waits for what it has not sent to itself");
    const OwnFrame frame = std::move(own_sent_[channel].front());
    own_sent_[channel].pop_front();
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
  std::array<std::deque<OwnFrame>, kChannels> own_sent_;
  std::array<std::deque<OwnReceive>, kChannels> own_posted_;
  Sender wire_;  // end first
  Sender bulk_;
};

}  // namespace

std::unique_ptr<Transport> make_staged_transport(Transport& host, DeviceMemory& memory) {
  return std::make_unique<StagedTransport>(host, memory);
}

}  // namespace everstep::trainer
