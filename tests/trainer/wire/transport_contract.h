#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "trainer/wire/transport.h"

// What every Transport promises, as tests. A test program includes this once and instantiates TransportContract with
// its ways to make transports.
namespace everstep::trainer {

using namespace std::chrono_literals;

struct TransportMaker {
  std::string name;
  std::function<std::vector<std::unique_ptr<Transport>>(int workers)> make;
  bool can_go_on = true;     // after the death of somebody who is not needed
  int channels = kChannels;  // that are not the transport's own
};

inline std::string maker_name(const testing::TestParamInfo<TransportMaker>& info) { return info.param.name; }

class TransportContract : public testing::TestWithParam<TransportMaker> {
 protected:
  static constexpr auto kSoon = 10s;       // a frame that must come comes much earlier
  static constexpr auto kTooShort = 30ms;  // for what must not come

  void start(int workers) { transports_ = GetParam().make(workers); }
  Transport& worker(int index) { return *transports_[index]; }
  void kill(int index) { transports_[index].reset(); }

  static FrameHeader header(std::int64_t window, std::size_t length) {
    FrameHeader header;
    header.lineage = 7;
    header.window = window;
    header.length = length;
    return header;
  }

  static Buffer filled(std::size_t bytes, std::uint64_t seed) {
    Buffer buffer = allocate_zeroed(bytes);
    std::uint64_t word = seed * 0x9E3779B97F4A7C15 + 1;
    for (std::size_t i = 0; i < bytes; ++i) {
      word = word * 6364136223846793005 + 1442695040888963407;
      buffer.data[i] = static_cast<std::byte>(word >> 56);
    }
    return buffer;
  }

  static bool equal(const Buffer& a, const Buffer& b) {
    return a.size == b.size && std::equal(a.data, a.data + a.size, b.data);
  }

  // Sends a frame and receives it, receive first or send first.
  void expect_delivery(int from, int to, std::size_t bytes, bool receive_first) {
    const Buffer payload = filled(bytes, bytes);
    const Buffer into = allocate_zeroed(bytes);
    ReceiveId receive = 0;
    if (receive_first) receive = worker(to).post_receive(from, Channel::kTensors, header(1, bytes), into);
    worker(from).send(to, Channel::kTensors, header(1, bytes), payload);
    if (!receive_first) receive = worker(to).post_receive(from, Channel::kTensors, header(1, bytes), into);
    const Result<FrameHeader> received = worker(to).wait(receive, kSoon);
    ASSERT_TRUE(received) << received.error();
    EXPECT_EQ(*received, header(1, bytes));
    EXPECT_TRUE(equal(payload, into));
    EXPECT_TRUE(worker(from).flush(kSoon));
  }

  ErrorCode receive_error(int from, int to, const FrameHeader& expected, std::chrono::milliseconds timeout) {
    const Buffer into = allocate_zeroed(expected.length);
    const Result<FrameHeader> received =
        worker(to).wait(worker(to).post_receive(from, Channel::kTensors, expected, into), timeout);
    EXPECT_FALSE(received);
    return received.error().code;
  }

  std::vector<std::unique_ptr<Transport>> transports_;
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

TEST_P(TransportContract, DeliversFramesOfEverySize) {
  start(2);
  EXPECT_EQ(worker(1).worker(), 1);
  EXPECT_EQ(worker(1).workers(), 2);
  for (const std::size_t bytes : {0UL, 1UL, 96UL, 4096UL, 100'000UL, 8UL << 20}) {
    for (const bool receive_first : {true, false}) expect_delivery(0, 1, bytes, receive_first);
  }
}

TEST_P(TransportContract, DeliversFramesToTheSenderItself) {
  start(2);
  for (const std::size_t bytes : {0UL, 96UL, 100'000UL, 8UL << 20}) {
    for (const bool receive_first : {true, false}) expect_delivery(1, 1, bytes, receive_first);
  }
}

TEST_P(TransportContract, KeepsTheOrderWithinAChannel) {
  start(2);
  constexpr int kFrames = 50;
  std::vector<Buffer> payloads;
  std::vector<Buffer> into;
  std::vector<ReceiveId> receives;
  for (int i = 0; i < kFrames; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 300'000 : 100;  // large and small ones travel by different protocols
    payloads.push_back(filled(bytes, i));
    worker(0).send(1, Channel::kTensors, header(i, bytes), payloads.back());
  }
  for (int i = 0; i < kFrames; ++i) {
    into.push_back(allocate_zeroed(payloads[i].size));
    receives.push_back(worker(1).post_receive(0, Channel::kTensors, header(i, into[i].size), into[i]));
  }
  for (int i = kFrames - 1; i >= 0; --i) {  // waiting in another order changes nothing
    const Result<FrameHeader> received = worker(1).wait(receives[i], kSoon);
    ASSERT_TRUE(received) << received.error();
    EXPECT_EQ(received->window, i);
    EXPECT_TRUE(equal(payloads[i], into[i]));
  }
}

TEST_P(TransportContract, AFrameDoesNotWaitForTheNextOneOfItsChannel) {
  start(2);
  const ReceiveId first = worker(1).post_receive(0, Channel::kTensors, header(1, 8), allocate_zeroed(8));
  const ReceiveId second = worker(1).post_receive(0, Channel::kTensors, header(2, 8), allocate_zeroed(8));
  worker(0).send(1, Channel::kTensors, header(1, 8), allocate_zeroed(8));
  EXPECT_TRUE(worker(1).wait(first, kSoon));
  EXPECT_FALSE(worker(1).ready(second));
}

TEST_P(TransportContract, AFrameDoesNotWaitForAnotherChannel) {
  start(2);
  const Buffer small = allocate_zeroed(8);
  const ReceiveId tensor = worker(1).post_receive(0, Channel::kTensors, header(1, 8), allocate_zeroed(8));
  const ReceiveId record = worker(1).post_receive(0, Channel::kRecords, header(2, 8), allocate_zeroed(8));
  worker(0).send(1, Channel::kCollectives, header(3, 8 << 20), allocate_zeroed(8 << 20));  // nobody takes it
  worker(0).send(1, Channel::kRecords, header(2, 8), small);
  EXPECT_TRUE(worker(1).wait(record, kSoon));
  EXPECT_FALSE(worker(1).ready(tensor));
}

TEST_P(TransportContract, ReadyTurnsTrueWithoutWaiting) {
  start(2);
  const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(1, 1 << 20), allocate_zeroed(1 << 20));
  EXPECT_FALSE(worker(1).ready(receive));
  worker(0).send(1, Channel::kTensors, header(1, 1 << 20), allocate_zeroed(1 << 20));
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (!worker(1).ready(receive) && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(worker(1).wait(receive, 0ms));
}

TEST_P(TransportContract, AllToAllUnderLoadLosesNothing) {
  constexpr int kWorkers = 3;
  constexpr int kRounds = 30;
  start(kWorkers);
  const auto size_of = [](int from, int to, int channel, int round) -> std::size_t {
    return RandomStream(1, from * 100 + to * 10 + channel).below(round, 3) * 40'000 + round;
  };
  const auto seed_of = [](int from, int to, int round) { return from * 10'000 + to * 1'000 + round; };
  const auto run = [&](int me) {
    struct Expected {
      ReceiveId id;
      Buffer into;
      Buffer wanted;
    };
    std::vector<Expected> receives;
    for (int round = 0; round < kRounds; ++round) {
      for (int peer = 0; peer < kWorkers; ++peer) {
        for (int channel = 0; channel < GetParam().channels; ++channel) {
          const auto lane = static_cast<Channel>(channel);
          const std::size_t in = size_of(peer, me, channel, round);
          const std::size_t out = size_of(me, peer, channel, round);
          const Buffer into = allocate_zeroed(in);
          receives.push_back({worker(me).post_receive(peer, lane, header(round, in), into), into,
                              filled(in, seed_of(peer, me, round))});
          worker(me).send(peer, lane, header(round, out), filled(out, seed_of(me, peer, round)));
        }
      }
    }
    for (const Expected& receive : receives) {
      const Result<FrameHeader> received = worker(me).wait(receive.id, kSoon);
      ASSERT_TRUE(received) << received.error();
      EXPECT_TRUE(equal(receive.into, receive.wanted));
    }
    const Status closed = worker(me).close(kSoon);
    EXPECT_TRUE(closed) << closed.error();
  };
  std::vector<std::thread> threads;
  for (int me = 0; me < kWorkers; ++me) threads.emplace_back(run, me);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(TransportContract, RefusesAFrameThatIsNotTheExpectedOne) {
  start(2);
  worker(0).send(1, Channel::kTensors, header(4, 16), allocate_zeroed(16));
  EXPECT_EQ(receive_error(0, 1, header(5, 16), kSoon), ErrorCode::kInternal);
  EXPECT_EQ(worker(1).status().error().code, ErrorCode::kInternal);
}

TEST_P(TransportContract, RefusesAFrameOfAnotherGeneration) {
  start(2);
  FrameHeader stale = header(1, 16);
  stale.generation = Generation{9};
  worker(0).send(1, Channel::kTensors, stale, allocate_zeroed(16));
  EXPECT_EQ(receive_error(0, 1, header(1, 16), kSoon), ErrorCode::kStaleGeneration);
}

TEST_P(TransportContract, RefusesALongerFrameAndWritesNothingOutsideTheBuffer) {
  for (const std::size_t bytes : {1000UL, 1UL << 20}) {
    start(2);
    const Buffer whole = allocate_zeroed(2 * bytes);
    const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(1, bytes), whole.part(0, bytes));
    worker(0).send(1, Channel::kTensors, header(1, 2 * bytes), filled(2 * bytes, 3));
    const Result<FrameHeader> received = worker(1).wait(receive, kSoon);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().code, ErrorCode::kInternal) << received.error();
    EXPECT_TRUE(equal(whole.part(bytes, bytes), allocate_zeroed(bytes)));
  }
}

TEST_P(TransportContract, RefusesAnEmptyFrameWhereBytesAreExpected) {
  start(2);
  worker(0).send(1, Channel::kTensors, header(1, 0), {});
  EXPECT_EQ(receive_error(0, 1, header(1, 64), kSoon), ErrorCode::kInternal);
}

TEST_P(TransportContract, AFrameThatDoesNotComeEndsTheTransportAtTheDeadline) {
  start(2);
  const Buffer into = allocate_zeroed(16);
  const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(3, 16), into);
  const Result<FrameHeader> received = worker(1).wait(receive, kTooShort);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_NE(received.error().message.find("worker 0"), std::string::npos) << received.error();
  EXPECT_NE(received.error().message.find("window 3"), std::string::npos) << received.error();
  EXPECT_EQ(worker(1).status().error(), received.error());
  worker(0).send(1, Channel::kTensors, header(3, 16), allocate_zeroed(16));  // too late
  EXPECT_TRUE(worker(1).ready(receive));
  EXPECT_EQ(worker(1).wait(receive, kSoon).error(), received.error());
}

TEST_P(TransportContract, FlushFailsWhileAFrameIsNotTaken) {
  start(2);
  worker(0).send(1, Channel::kTensors, header(1, 8 << 20), allocate_zeroed(8 << 20));
  EXPECT_EQ(worker(0).flush(kTooShort).error().code, ErrorCode::kDeadlineExceeded);
}

TEST_P(TransportContract, AbortFromAnotherThreadWakesAWaiter) {
  start(2);
  const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(1, 16), allocate_zeroed(16));
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    worker(1).abort({ErrorCode::kInternal, "the user pressed a key", {}});
  });
  const Result<FrameHeader> received = worker(1).wait(receive, kSoon);
  other.join();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error(), (Error{ErrorCode::kCancelled, "the user pressed a key", {}}));
  EXPECT_EQ(worker(1).flush(kSoon).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(worker(1).close(kSoon).error().code, ErrorCode::kCancelled);
}

TEST_P(TransportContract, ADeathIsSeenByAllPeersWithItsName) {
  start(4);
  std::vector<ReceiveId> receives;
  for (int peer : {0, 1, 3}) {  // worker 3 waits for another one, and must hear of it all the same
    receives.push_back(
        worker(peer).post_receive(peer == 3 ? 0 : 2, Channel::kTensors, header(1, 8), allocate_zeroed(8)));
  }
  kill(2);
  for (int peer : {0, 1, 3}) {
    const Result<FrameHeader> received = worker(peer).wait(receives[peer == 3 ? 2 : peer], kSoon);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(received.error().message.find("worker 2"), std::string::npos) << received.error();
  }
}

TEST_P(TransportContract, ADeathOfSomebodyWhoIsNotNeededOnlyInterrupts) {
  start(4);
  for (const int peer : {0, 1}) worker(peer).need_only({0, 1});
  const Buffer payload = filled(300'000, 5);
  const Buffer into = allocate_zeroed(payload.size);
  const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(1, into.size), into);
  const ReceiveId from_other = worker(1).post_receive(2, Channel::kTensors, header(1, 8), allocate_zeroed(8));
  kill(3);
  const Result<FrameHeader> interrupted = worker(1).wait(receive, kSoon);
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker(1).status().error(), interrupted.error());
  EXPECT_EQ(worker(1).lost(), (LostPeer{3, LostPeer::How::kClosed}));
  EXPECT_EQ(worker(1).flush(kSoon).error(), interrupted.error());
  worker(0).send(1, Channel::kTensors, header(1, payload.size), payload);  // whether it knows of the death or not
  if (!GetParam().can_go_on) {
    EXPECT_EQ(worker(1).go_on().error(), interrupted.error());
    return;
  }
  ASSERT_TRUE(worker(1).go_on());
  EXPECT_TRUE(worker(1).status());
  EXPECT_EQ(worker(1).lost(), (LostPeer{3, LostPeer::How::kClosed}));
  const Result<FrameHeader> received = worker(1).wait(receive, kSoon);
  ASSERT_TRUE(received) << received.error();
  EXPECT_TRUE(equal(payload, into));
  EXPECT_EQ(worker(1).wait(from_other, kSoon).error(), interrupted.error());
  worker(1).send(2, Channel::kTensors, header(1, 8 << 20), allocate_zeroed(8 << 20));  // goes nowhere
  EXPECT_TRUE(worker(1).flush(kSoon));
  kill(2);
  while (worker(0).status()) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(worker(0).go_on());
  expect_delivery(0, 1, 100'000, true);
  EXPECT_TRUE(worker(1).status());
}

TEST_P(TransportContract, ADeathOfSomebodyWhoIsNeededEndsItAllTheSame) {
  start(3);
  worker(1).need_only({0, 1});
  kill(2);
  while (worker(1).status()) std::this_thread::sleep_for(1ms);
  const ReceiveId receive = worker(1).post_receive(0, Channel::kTensors, header(1, 8), allocate_zeroed(8));
  EXPECT_EQ(worker(1).go_on().ok(), GetParam().can_go_on);
  kill(0);
  EXPECT_EQ(worker(1).wait(receive, kSoon).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker(1).go_on().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker(1).lost(), (LostPeer{2, LostPeer::How::kClosed}));
}

TEST_P(TransportContract, ADeathBeforeGoodbyeIsNoCleanClose) {
  start(2);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    kill(1);
  });
  const Status closed = worker(0).close(kSoon);
  other.join();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::kUnavailable);
}

TEST_P(TransportContract, CloseWaitsForTheGoodbyeOfEveryPeer) {
  start(3);
  std::atomic<bool> last_said_goodbye = false;
  const auto leave = [&](int me) {
    const Status closed = worker(me).close(kSoon);
    EXPECT_TRUE(closed) << closed.error();
    EXPECT_TRUE(last_said_goodbye);
    kill(me);
  };
  std::thread first(leave, 0);
  std::thread second(leave, 1);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(worker(2).status());  // goodbyes are no deaths
  last_said_goodbye = true;
  leave(2);
  first.join();
  second.join();
}

TEST_P(TransportContract, CloseGivesUpAtTheDeadline) {
  start(2);
  EXPECT_EQ(worker(0).close(kTooShort).error().code, ErrorCode::kDeadlineExceeded);
}

}  // namespace everstep::trainer
