#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/handmade_peer.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

// What a connection does with frames, beyond what every transport promises.
namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

FrameHeader header(std::size_t length, std::int64_t window = 1) {
  FrameHeader header;
  header.window = window;
  header.length = length;
  return header;
}

Buffer filled(std::size_t bytes, unsigned seed) {
  const Buffer buffer = allocate_zeroed(bytes);
  for (std::size_t i = 0; i < bytes; ++i) buffer.data[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 9);
  return buffer;
}

bool equal(const Buffer& a, const Buffer& b) { return a.size == b.size && std::equal(a.data, a.data + a.size, b.data); }

class SocketSessions : public OverEachWire {
 protected:
  Transport& worker(int index) { return *connections_[index].transport; }

  ReceiveId post(int to, const Buffer& into, Channel channel = Channel::kTensors, std::int64_t window = 1) {
    return worker(to).post_receive(1 - to, channel, header(into.size, window), into);
  }
  void send(int from, const Buffer& payload, Channel channel = Channel::kTensors, std::int64_t window = 1) {
    worker(from).send(1 - from, channel, header(payload.size, window), payload);
  }

  // Nearly, while nobody reads. Over TCP a part of it lies with the reader already, and a part does not. A machine may
  // allow less than a worker asks for.
  static std::size_t most_that_the_kernel_takes() {
    double allowed = 0;
    std::ifstream("/proc/sys/net/core/wmem_max") >> allowed;
    return static_cast<std::size_t>(std::min(allowed, 1048576.0) * (GetParam() == Wire::kUnix ? 0.9 : 2.1));
  }

  LoopbackWorkers workers_{2, options_of(GetParam())};
  std::vector<PeerConnection> connections_ = workers_.connect();
};

// 200 MiB that nobody takes: they wait here and not in the kernel, and the caller does not.
TEST_P(SocketSessions, SendReturnsAtOnceWhileNobodyReads) {
  const Buffer payload = allocate_zeroed(8 << 20);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 25; ++i) send(0, payload);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(worker(0).status());
  EXPECT_GT(payload.owner.use_count(), 20) << "the frames are kept until they have left";
  const Status flushed = worker(0).flush(200ms);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(flushed.error().message, HasSubstr("frames for worker 1 were not taken within 200 ms"));
  EXPECT_EQ(worker(0).lost(), (LostPeer{1, LostPeer::How::kSilent}));
}

TEST_P(SocketSessions, AReaderThatDoesNotPostHoldsTheSenderBack) {
  const Buffer payload = filled(16 << 20, 1);
  const Buffer into = allocate_zeroed(payload.size);
  send(0, payload);
  std::this_thread::sleep_for(300ms);
  EXPECT_GT(payload.owner.use_count(), 1) << "it cannot have left: no kernel takes that much";
  const ReceiveId receive = post(1, into);
  EXPECT_TRUE(worker(0).flush(kSoon));
  EXPECT_TRUE(worker(1).wait(receive, kSoon));
  EXPECT_TRUE(equal(payload, into));
  EXPECT_TRUE(comes_true([&] { return payload.owner.use_count() == 1; })) << "what has left is not kept";
}

// The buffers of the two ends are full in both directions, and both only send.
TEST_P(SocketSessions, BothSidesMaySendBeforeEitherReceives) {
  const Buffer payload = filled(12 << 20, 2);
  std::vector<std::thread> threads;
  for (const int me : {0, 1}) {
    threads.emplace_back([&, me] {
      const Buffer into = allocate_zeroed(payload.size);
      send(me, payload);
      const ReceiveId receive = post(me, into);
      EXPECT_TRUE(worker(me).wait(receive, kSoon));
      EXPECT_TRUE(equal(payload, into));
      EXPECT_TRUE(worker(me).flush(kSoon));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(SocketSessions, ASmallFrameDoesNotWaitBehindBulkOnAnotherChannel) {
  constexpr int kFrames = 16;
  const Buffer bulk = allocate_zeroed(8 << 20);
  const Buffer into = allocate_zeroed(bulk.size);
  for (int i = 0; i < kFrames / 2; ++i) post(1, into, Channel::kCollectives, i);
  const ReceiveId small = post(1, allocate_zeroed(100), Channel::kRecords);
  for (int i = 0; i < kFrames; ++i) send(0, bulk, Channel::kCollectives, i);
  send(0, allocate_zeroed(100), Channel::kRecords);
  ASSERT_TRUE(worker(1).wait(small, kSoon)) << "half of the bulk cannot go on before it is wanted";
  ReceiveId last = 0;
  for (int i = kFrames / 2; i < kFrames; ++i) last = post(1, into, Channel::kCollectives, i);
  EXPECT_TRUE(worker(1).wait(last, kSoon));
}

// It came with what was read before; the kernel shows no event for it.
TEST_P(SocketSessions, AFrameThatWasReadAheadIsDeliveredWhenItIsPostedLater) {
  for (const bool waits : {false, true}) {
    for (int i = 0; i < 3; ++i) send(0, filled(100, i), Channel::kTensors, i);
    std::this_thread::sleep_for(50ms);  // until all three lie in the kernel
    for (int i = 0; i < 3; ++i) {
      const Buffer into = allocate_zeroed(100);
      const ReceiveId receive = post(1, into, Channel::kTensors, i);
      EXPECT_TRUE(waits || comes_true([&] { return worker(1).ready(receive); })) << i;
      ASSERT_TRUE(worker(1).wait(receive, kSoon)) << i;
      EXPECT_TRUE(equal(into, filled(100, i)));
    }
  }
}

// What is left of a record when a call has read enough lies with the stream, and the kernel has nothing more to show.
// That is so, too, when nothing can leave meanwhile, and the channel cannot be written to.
TEST_P(SocketSessions, TheRestOfAFrameThatWasReadAheadComesWithoutTheCaller) {
  for (const std::size_t first : {1000UL, 60'000UL, 70'000UL, 250'000UL, 260'000UL}) {
    HandmadePeer peer(GetParam());
    peer.connection.transport->send(1, Channel::kTensors, header(16 << 20), allocate_zeroed(16 << 20));
    const std::string payload(first + 12'000 - kFrameHeaderBytes, 'p');
    const FrameBytes front = encode_frame(header(payload.size()));
    const std::string frame = std::string(reinterpret_cast<const char*>(front.data()), front.size()) + payload;
    write_all(peer.channel(Channel::kTensors), frame.substr(0, first));
    write_all(peer.channel(Channel::kTensors), frame.substr(first));
    std::this_thread::sleep_for(50ms);  // until all of it lies in the kernel
    Transport& transport = *peer.connection.transport;
    const Buffer into = allocate_zeroed(payload.size());
    const ReceiveId receive = transport.post_receive(1, Channel::kTensors, header(payload.size()), into);
    EXPECT_TRUE(comes_true([&] { return transport.ready(receive); })) << first;
    ASSERT_TRUE(transport.wait(receive, kSoon));
    EXPECT_EQ(std::string(into.as<const char>().begin(), into.as<const char>().end()), payload);
  }
}

// The caller computes, and only looks at the status. Nobody may take the other side for dead.
TEST_P(SocketSessions, AFrameThatIsNotTheExpectedOneIsToldWhileFramesLeave) {
  HandmadePeer peer(GetParam());
  Transport& transport = *peer.connection.transport;
  ByteStream& channel = peer.channel(Channel::kTensors);
  transport.post_receive(1, Channel::kTensors, header(8), allocate_zeroed(8));
  transport.send(1, Channel::kTensors, header(64 << 20), allocate_zeroed(64 << 20));
  std::vector<char> taken(64 << 10);
  const iovec into{taken.data(), taken.size()};
  std::size_t bytes = 0;
  bool has_written = false;
  const bool failed = comes_true([&] {
    while (bytes < (60 << 20)) {  // some of it is always on the way
      const StreamResult came = channel.read({&into, 1});
      if (!came.moved()) break;
      bytes += came.bytes;
      if (bytes > (1 << 20) && !std::exchange(has_written, true)) write_all(channel, std::string(200, '?'));
    }
    return !transport.status();
  });
  ASSERT_TRUE(failed);
  EXPECT_EQ(transport.status().error().code, ErrorCode::kInternal) << transport.status().error();
  EXPECT_THAT(transport.status().error().message, HasSubstr("worker 1 sent garbage"));
}

// A worker leaves with its last frame on the way, and has not read what others sent to it.
TEST_P(SocketSessions, ClosingWithUnreadDataLosesNoFrameThatWasFlushed) {
  for (const std::size_t size : {1000UL, 300'000UL, most_that_the_kernel_takes()}) {
    connections_ = workers_.connect(static_cast<std::int64_t>(size));
    const Buffer payload = filled(size, 3);
    const Buffer into = allocate_zeroed(size);
    send(1, filled(500'000, 1));
    ASSERT_TRUE(worker(1).flush(kSoon));
    send(0, payload);
    ASSERT_TRUE(worker(0).flush(kSoon));
    worker(0).leave();
    connections_[0].transport.reset();
    connections_[0].news.reset();
    std::this_thread::sleep_for(300ms);
    const ReceiveId receive = post(1, into);
    const Result<FrameHeader> received = worker(1).wait(receive, kSoon);
    ASSERT_TRUE(received) << size << ": " << received.error();
    EXPECT_TRUE(equal(payload, into)) << size;
  }
}

// The same, and the process ends.
TEST_P(SocketSessions, ClosingTheConnectorLosesNoFrameThatWasFlushed) {
  const Buffer payload = filled(most_that_the_kernel_takes(), 4);
  const Buffer into = allocate_zeroed(payload.size);
  send(1, filled(500'000, 1));
  ASSERT_TRUE(worker(1).flush(kSoon));
  send(0, payload);
  ASSERT_TRUE(worker(0).flush(kSoon));
  worker(0).leave();
  connections_[0] = {};
  std::thread reading([&] {
    std::this_thread::sleep_for(300ms);
    const Result<FrameHeader> received = worker(1).wait(post(1, into), kSoon);
    ASSERT_TRUE(received) << received.error();
  });
  workers_.connectors[0].reset();
  reading.join();
  EXPECT_TRUE(equal(payload, into));
}

TEST_P(SocketSessions, AChannelThatIsClosedByAPeerThatLivesIsGivenUpAfterAWhile) {
  HandmadePeer peer(GetParam());
  Transport& transport = *peer.connection.transport;
  const ReceiveId receive = transport.post_receive(1, Channel::kTensors, header(8), allocate_zeroed(8));
  peer.streams.channels[static_cast<std::size_t>(Channel::kTensors)].reset();
  const Result<FrameHeader> received = transport.wait(receive, kSoon);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(received.error().message, HasSubstr("worker 1 closed a connection"));
}

TEST_P(SocketSessions, AChannelThatIsClosedAfterAGoodbyeIsNoDeath) {
  HandmadePeer peer(GetParam());
  Transport& transport = *peer.connection.transport;
  write_all(*peer.streams.lifeline, std::string_view("g\0\0", 3));
  for (auto& channel : peer.streams.channels) channel.reset();
  peer.streams.lifeline.reset();
  std::this_thread::sleep_for(1500ms);  // longer than a worker may take to explain itself
  EXPECT_TRUE(transport.status());
  EXPECT_TRUE(transport.close(kSoon));
}

INSTANTIATE_TEST_SUITE_P(, SocketSessions, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
