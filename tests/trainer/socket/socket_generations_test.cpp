#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using How = LostPeer::How;

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

FrameHeader frame_of(std::size_t length) {
  FrameHeader header;
  header.length = length;
  return header;
}

bool deliver(const std::vector<PeerConnection>& connections, int from, int to, std::size_t bytes) {
  Transport& receiver = *connections[to].transport;
  const ReceiveId receive = receiver.post_receive(from, Channel::kTensors, frame_of(bytes), allocate_zeroed(bytes));
  connections[from].transport->send(to, Channel::kTensors, frame_of(bytes), allocate_zeroed(bytes));
  return receiver.wait(receive, kSoon).ok() && connections[from].transport->flush(kSoon).ok();
}

class SocketGenerations : public OverEachWire {};

// What it has to hand over may fit into the kernel's buffers, and the others be slow.
TEST_P(SocketGenerations, AWorkerMayBeDoneBeforeTheOthersAreConnected) {
  constexpr int kWorkers = 4;
  constexpr int kHasty = 3;
  LoopbackWorkers workers(kWorkers, options_of(GetParam()));
  for (std::int64_t generation = 1; generation <= 50; ++generation) {
    std::vector<std::thread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        const PeerRoster roster = test_roster(worker, workers.addresses, generation);
        ConnectOutcome outcome = workers.connectors[worker]->connect(roster, kSoon);
        ASSERT_TRUE(outcome.connection) << "worker " << worker << ": " << outcome.connection.error();
        Transport& transport = *outcome.connection->transport;
        if (worker == kHasty) {
          for (int to = 0; to < kHasty; ++to)
            transport.send(to, Channel::kTensors, frame_of(100), allocate_zeroed(100));
          EXPECT_TRUE(transport.flush(kSoon));
        } else {
          const ReceiveId receive =
              transport.post_receive(kHasty, Channel::kTensors, frame_of(100), allocate_zeroed(100));
          const Result<FrameHeader> received = transport.wait(receive, kSoon);
          EXPECT_TRUE(received) << "worker " << worker << ": " << received.error();
        }
        transport.leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (HasFailure()) break;
  }
}

TEST_P(SocketGenerations, FollowEachOtherWithoutLeavingDescriptorsBehind) {
  constexpr int kWorkers = 4;
  LoopbackWorkers workers(kWorkers, options_of(GetParam()));
  std::vector<PeerConnection> present = workers.connect(1);
  std::ptrdiff_t after_warm_up = 0;
  std::vector<std::chrono::steady_clock::duration> switches;
  for (std::int64_t generation = 2; generation <= 51; ++generation) {
    std::vector<PeerConnection> next = workers.connect(generation);
    for (int from = 0; from < kWorkers; ++from) {
      ASSERT_TRUE(deliver(present, from, (from + 1) % kWorkers, 100'000));
    }
    for (PeerConnection& connection : present) {
      EXPECT_TRUE(connection.transport->status()) << "generation " << generation;
      const auto before = std::chrono::steady_clock::now();
      connection.transport->leave();
      connection.transport.reset();
      switches.push_back(std::chrono::steady_clock::now() - before);
    }
    present = std::move(next);
    if (generation == 6) after_warm_up = open_descriptors();
  }
  // One that waits for its peers would never end here; the slowest one also waits for a busy machine.
  std::sort(switches.begin(), switches.end());
  const auto in_us = [](auto time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); };
  const auto median = switches[switches.size() / 2];
  std::cout << "switch: median " << in_us(median) << " us, slowest " << in_us(switches.back()) << " us\n";
  EXPECT_LT(median, 100ms);
  EXPECT_TRUE(comes_true([&] { return open_descriptors() <= after_warm_up; }))
      << after_warm_up << " descriptors became " << open_descriptors();
}

TEST_P(SocketGenerations, AWorkerThatLeavesEarlyDoesNotDisturbTheOthers) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  std::vector<PeerConnection> connections = workers.connect();
  ASSERT_TRUE(deliver(connections, 2, 0, 1 << 20));
  connections[2].transport->leave();
  connections[2].transport.reset();
  std::this_thread::sleep_for(50ms);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(deliver(connections, i % 2, 1 - i % 2, 1 << 20));
  EXPECT_TRUE(connections[0].transport->status());
  EXPECT_EQ(connections[0].transport->lost(), std::nullopt);
  connections[0].transport->send(2, Channel::kTensors, frame_of(8), allocate_zeroed(8));
  EXPECT_EQ(connections[0].transport->status().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(connections[0].transport->lost(), (LostPeer{2, How::kRefused}));
}

TEST_P(SocketGenerations, ASlowerPeerMayStillUseATransportThatOthersHaveLeft) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  std::vector<PeerConnection> old = workers.connect(1);
  const std::vector<PeerConnection> next = workers.connect(2);
  ASSERT_TRUE(deliver(old, 0, 1, 1000));
  old[0].transport->leave();
  old[0].transport.reset();
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(old[1].transport->status());
  EXPECT_TRUE(deliver(next, 0, 1, 1000));
}

TEST_P(SocketGenerations, SayWhoEndedThem) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  std::vector<PeerConnection> connections = workers.connect();
  const ReceiveId receive =
      connections[0].transport->post_receive(1, Channel::kTensors, frame_of(8), allocate_zeroed(8));
  EXPECT_EQ(connections[0].transport->lost(), std::nullopt);
  EXPECT_FALSE(connections[0].transport->wait(receive, 30ms));
  EXPECT_EQ(connections[0].transport->lost(), (LostPeer{1, How::kSilent}));
  connections[0].transport.reset();
  EXPECT_TRUE(comes_true([&] { return !connections[2].transport->status(); }));
  EXPECT_EQ(connections[2].transport->lost(), (LostPeer{0, How::kClosed}));
}

TEST_P(SocketGenerations, AfterADeathNothingIsLeftOnceAllSurvivorsHaveLeft) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  std::vector<PeerConnection> warm = workers.connect(1);
  for (PeerConnection& connection : warm) connection.transport->leave();
  warm.clear();
  std::ptrdiff_t before = 0;
  for (std::int64_t generation = 2; generation < 12; ++generation) {
    std::vector<PeerConnection> connections = workers.connect(generation);
    for (int peer : {0, 1}) {
      connections[2].transport->send(peer, Channel::kTensors, frame_of(8 << 20), allocate_zeroed(8 << 20));
      connections[1 - peer].transport->send(2, Channel::kTensors, frame_of(8 << 20), allocate_zeroed(8 << 20));
    }
    connections[2].transport->leave();  // stands in for a death: its descriptors are this process's too
    connections[2].transport->abort({ErrorCode::kInternal, "it ends", {}});
    connections[2].transport.reset();
    for (int survivor : {0, 1}) {
      connections[survivor].transport->abort({ErrorCode::kInternal, "a death was heard of", {}});
      connections[survivor].transport->leave();
      connections[survivor].transport.reset();
    }
    if (generation == 4) before = open_descriptors();
  }
  EXPECT_TRUE(comes_true([&] { return open_descriptors() <= before; }))
      << before << " descriptors became " << open_descriptors();
}

TEST_P(SocketGenerations, RenewalsAreHeardByAllPeers) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  const std::vector<PeerConnection> connections = workers.connect();
  EXPECT_EQ(connections[1].news->peer_renewed_at(), std::nullopt);
  const auto before = std::chrono::steady_clock::now();
  connections[0].news->tell_renewed();
  for (int peer : {1, 2}) {
    EXPECT_TRUE(comes_true([&] { return connections[peer].news->peer_renewed_at() > before; }));
  }
  EXPECT_EQ(connections[0].news->peer_renewed_at(), std::nullopt);
  const auto first = connections[1].news->peer_renewed_at();
  connections[2].news->tell_renewed();
  EXPECT_TRUE(comes_true([&] { return connections[1].news->peer_renewed_at() > first; }));
  EXPECT_TRUE(connections[1].transport->status());
}

// One that says nothing more is dead, one that says goodbye is not.
TEST_P(SocketGenerations, TheEndOfAWorkerThatBrokeOffIsADeathUntilItSaysGoodbye) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  std::vector<PeerConnection> connections = workers.connect();
  for (PeerConnection& connection : connections) {
    connection.transport->break_off();
    connection.transport.reset();
  }
  EXPECT_EQ(connections[0].news->look_for_dead(), std::vector<int>());
  connections[1].news->say_goodbye();
  connections[1].news.reset();
  connections[2].news.reset();
  EXPECT_TRUE(comes_true([&] { return connections[0].news->look_for_dead() == std::vector{2}; }));
}

TEST_P(SocketGenerations, NewsMayOutliveTheirTransport) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  std::vector<PeerConnection> connections = workers.connect();
  const std::shared_ptr<LifelineNews> news = connections[0].news;
  connections.clear();
  workers.connectors.clear();
  news->tell_renewed();
  EXPECT_EQ(news->peer_renewed_at(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(, SocketGenerations, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
