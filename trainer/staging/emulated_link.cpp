#include "trainer/staging/emulated_link.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "trainer/staging/sender.h"
#include "trainer/wire/wrapped_transport.h"

namespace everstep::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class LeftLink final : public DeviceMark {
 public:
  explicit LeftLink(Clock::time_point at) : at_(at) {}
  bool has_passed() const override { return Clock::now() >= at_; }
  void wait() const override { std::this_thread::sleep_until(at_); }

 private:
  Clock::time_point at_;
};

// Sums of gradients and new weights, provisional ones, too.
bool takes_link(Channel channel) { return channel == Channel::kCollectives || channel == Channel::kProvisional; }

class EmulatedLink final : public WrappedTransport {
 public:
  EmulatedLink(Transport& host, std::int64_t bytes_per_second)
      : WrappedTransport(host), host_(host), clock_(bytes_per_second), link_(host) {}

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    if (!takes_link(channel) || to == worker()) {
      host_.send(to, channel, header, std::move(payload));
      return;
    }
    auto has_left = std::make_shared<LeftLink>(clock_.left_at(Clock::now(), payload.size));
    link_.add({to, channel, header, std::move(payload), std::move(has_left)});
  }

  Status flush(milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(hand_out_all(host_, {&link_}, deadline));
    return host_.flush(left_until(deadline));
  }

  Status close(milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(hand_out_all(host_, {&link_}, deadline));
    return host_.close(left_until(deadline));
  }

  void leave() override {
    link_.stop();
    host_.leave();
  }

  void break_off() override {
    link_.stop();
    host_.break_off();
  }

 private:
  Transport& host_;
  LinkClock clock_;
  Sender link_;  // ends first
};

}  // namespace

LinkClock::Time LinkClock::left_at(Time now, std::size_t bytes) {
  const std::chrono::duration<double> takes(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
  free_ = std::max(free_, now) + std::chrono::duration_cast<Clock::duration>(takes);
  return free_;
}

std::unique_ptr<Transport> make_emulated_link(Transport& host, std::int64_t bytes_per_second) {
  return std::make_unique<EmulatedLink>(host, bytes_per_second);
}

}  // namespace everstep::trainer
