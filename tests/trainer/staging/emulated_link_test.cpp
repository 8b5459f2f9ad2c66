#include "trainer/staging/emulated_link.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/wire/transport_contract.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/wire/wrapped_transport.h"

namespace everstep::trainer {
namespace {

constexpr std::int64_t kFast = std::int64_t{1} << 40;

// Both ends first, then what wraps them.
struct LinkAndHost {
  LinkAndHost(std::unique_ptr<Transport> from, std::int64_t bytes_per_second)
      : host(std::move(from)), link(make_emulated_link(*host, bytes_per_second)) {}

  std::unique_ptr<Transport> host;
  std::unique_ptr<Transport> link;
};

// An emulated link and the transport that it is made of, as one.
class LinkedTransport final : private LinkAndHost, public WrappedTransport {
 public:
  LinkedTransport(std::unique_ptr<Transport> made_of, std::int64_t bytes_per_second)
      : LinkAndHost(std::move(made_of), bytes_per_second), WrappedTransport(*link) {}
};

std::vector<std::unique_ptr<Transport>> linked(int workers, std::int64_t bytes_per_second) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (auto& host : make_thread_transports(workers)) {
    transports.push_back(std::make_unique<LinkedTransport>(std::move(host), bytes_per_second));
  }
  return transports;
}

INSTANTIATE_TEST_SUITE_P(EmulatedLink, TransportContract,
                         testing::Values(TransportMaker{"Threads", [](int workers) { return linked(workers, kFast); }}),
                         maker_name);

// ---- what is its own ----

class EmulatedLink : public testing::Test {
 protected:
  static constexpr std::int64_t kBytesPerSecond = 1'000'000;
  static constexpr std::size_t kBytes = 30'000;  // 30 ms
  static constexpr auto kTime = 30ms;
  static constexpr auto kLong = 10s;

  FrameHeader header(std::int64_t window) const {
    FrameHeader header;
    header.kind = FrameKind::kReplicaSum;
    header.window = window;
    header.length = kBytes;
    return header;
  }

  void send(Channel channel, std::int64_t window = 0, int to = 1) {
    workers_[0]->send(to, channel, header(window), allocate_zeroed(kBytes));
  }
  ReceiveId receive(Channel channel, std::int64_t window = 0, int at = 1) {
    return workers_[static_cast<std::size_t>(at)]->post_receive(0, channel, header(window), allocate_zeroed(kBytes));
  }

  std::vector<std::unique_ptr<Transport>> workers_ = linked(3, kBytesPerSecond);
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST(LinkClock, PutsOneFrameBehindTheOther) {
  LinkClock clock(1'000'000);
  const LinkClock::Time begin{5s};
  EXPECT_EQ(clock.left_at(begin, 2000) - begin, 2ms);
  EXPECT_EQ(clock.left_at(begin + 1ms, 3000) - begin, 5ms);
  EXPECT_EQ(clock.left_at(begin + 9ms, 1000) - begin, 10ms) << "a free link does not make up for the time before";
}

TEST_F(EmulatedLink, TakesAsLongAsTheBytesOfAllPeers) {
  send(Channel::kCollectives, 0, 1);
  send(Channel::kCollectives, 1, 2);
  send(Channel::kCollectives, 2, 1);
  const ReceiveId first = receive(Channel::kCollectives, 0, 1);
  const ReceiveId last = receive(Channel::kCollectives, 2, 1);
  const ReceiveId other = receive(Channel::kCollectives, 1, 2);
  EXPECT_TRUE(workers_[1]->wait(first, kLong).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin_, kTime);
  EXPECT_TRUE(workers_[2]->wait(other, kLong).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin_, 2 * kTime);
  EXPECT_TRUE(workers_[1]->wait(last, kLong).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin_, 3 * kTime);
}

TEST_F(EmulatedLink, LetsAllElsePass) {
  constexpr int kMany = 1000;  // half a minute of collectives
  for (int window = 0; window < kMany; ++window) send(Channel::kCollectives, window);
  for (const Channel channel : {Channel::kTensors, Channel::kRecords, Channel::kCopies}) {
    send(channel);
    EXPECT_TRUE(workers_[1]->wait(receive(channel), kLong).ok());
  }
  EXPECT_FALSE(workers_[0]->flush(1ms).ok()) << "the link still has much to send";
}

TEST_F(EmulatedLink, IsEmptyAfterAFlush) {
  const ReceiveId arrives = receive(Channel::kCollectives);
  send(Channel::kCollectives);
  EXPECT_TRUE(workers_[0]->flush(kLong).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin_, kTime);
  EXPECT_TRUE(workers_[1]->ready(arrives));
}

}  // namespace
}  // namespace everstep::trainer
