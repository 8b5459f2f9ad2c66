#include "trainer/staging/staged_transport.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/staging/held_memory.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

FrameHeader header_of(int minibatch, std::size_t length) {
  FrameHeader header;
  header.minibatch = minibatch;
  header.length = length;
  return header;
}

// Two workers in one thread; each has memory of its own.
class StagedTransportTest : public testing::Test {
 protected:
  Buffer filled(int worker, std::uint8_t value) {
    const Buffer buffer = memory_[worker].allocate_scratch(8);
    std::fill_n(buffer.data, buffer.size, std::byte{value});
    return buffer;
  }

  void send(int minibatch, const Buffer& payload, Channel channel = Channel::kTensors) {
    staged_[0]->send(1, channel, header_of(minibatch, payload.size), payload);
  }

  ReceiveId post(int minibatch, const Buffer& into, Channel channel = Channel::kTensors) {
    return staged_[1]->post_receive(0, channel, header_of(minibatch, into.size), into);
  }

  std::vector<std::unique_ptr<Transport>> host_ = make_thread_transports(2);
  HeldMemory memory_[2];
  std::unique_ptr<Transport> staged_[2] = {make_staged_transport(*host_[0], memory_[0]),
                                           make_staged_transport(*host_[1], memory_[1])};
};

TEST_F(StagedTransportTest, CarriesWhatLiesOnADevice) {
  const Buffer into = memory_[1].allocate_zeroed(8);
  const ReceiveId receive = post(3, into);
  send(3, filled(0, 7));
  const auto header = staged_[1]->wait(receive, 10s);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->minibatch, 3);
  EXPECT_EQ(into.data[7], std::byte{7});
}

TEST_F(StagedTransportTest, SendsNothingBeforeItsCopyHasCome) {
  memory_[0].hold();
  const ReceiveId receive = post(0, memory_[1].allocate_zeroed(8));
  const Buffer payload = filled(0, 1);
  send(0, payload);
  std::fill_n(payload.data, payload.size, std::byte{2});  // the copy is made
  EXPECT_FALSE(staged_[1]->ready(receive));
  memory_[0].let_go();
  EXPECT_TRUE(staged_[1]->wait(receive, 10s).ok());
}

TEST_F(StagedTransportTest, KeepsTheOrderOfFramesFromTheDeviceAndTheHost) {
  memory_[0].hold();
  const Buffer on_device = memory_[1].allocate_zeroed(8);
  const Buffer on_host = allocate_zeroed(8);
  const ReceiveId first = post(0, on_device, Channel::kSurvivors);
  const ReceiveId second = post(1, on_host, Channel::kSurvivors);
  send(0, filled(0, 5), Channel::kSurvivors);
  const Buffer word = allocate_zeroed(8);
  word.data[0] = std::byte{6};
  send(1, word, Channel::kSurvivors);
  EXPECT_FALSE(staged_[1]->ready(second));
  memory_[0].let_go();
  EXPECT_TRUE(staged_[1]->wait(first, 10s).ok());
  EXPECT_TRUE(staged_[1]->wait(second, 10s).ok());
  EXPECT_EQ(on_device.data[0], std::byte{5});
  EXPECT_EQ(on_host.data[0], std::byte{6});
}

TEST_F(StagedTransportTest, LetsFramesOfTheHostPassByOnOtherChannels) {
  memory_[0].hold();
  send(0, filled(0, 5));
  const Buffer into = allocate_zeroed(8);
  const ReceiveId record = post(1, into, Channel::kRecords);
  send(1, allocate_zeroed(8), Channel::kRecords);
  EXPECT_TRUE(staged_[1]->wait(record, 10s).ok());
  memory_[0].let_go();
}

TEST_F(StagedTransportTest, FlushesWhatTheDeviceStillHas) {
  memory_[0].hold();
  send(0, filled(0, 5));
  const Status late = staged_[0]->flush(20ms);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(staged_[0]->status().ok());
  memory_[0].let_go();
}

TEST_F(StagedTransportTest, FlushReturnsWhenAllIsDelivered) {
  const ReceiveId receive = post(0, memory_[1].allocate_zeroed(8));
  send(0, filled(0, 5));
  EXPECT_TRUE(staged_[0]->flush(10s).ok());
  EXPECT_TRUE(staged_[1]->ready(receive));
}

TEST_F(StagedTransportTest, KeepsFramesToItselfOnTheDevice) {
  memory_[0].hold();
  const Buffer into = memory_[0].allocate_zeroed(8);
  const ReceiveId receive = staged_[0]->post_receive(0, Channel::kTensors, header_of(2, 8), into);
  EXPECT_FALSE(staged_[0]->ready(receive));
  staged_[0]->send(0, Channel::kTensors, header_of(2, 8), filled(0, 9));
  EXPECT_TRUE(staged_[0]->ready(receive));
  EXPECT_TRUE(staged_[0]->wait(receive, 10s).ok());
  EXPECT_EQ(into.data[0], std::byte{9});
  memory_[0].let_go();
}

TEST_F(StagedTransportTest, FramesToItselfMayBeWaitedForInAnyOrder) {
  const Buffer first = memory_[0].allocate_zeroed(8);
  const Buffer second = memory_[0].allocate_zeroed(8);
  const ReceiveId one = staged_[0]->post_receive(0, Channel::kTensors, header_of(1, 8), first);
  const ReceiveId two = staged_[0]->post_receive(0, Channel::kTensors, header_of(2, 8), second);
  staged_[0]->send(0, Channel::kTensors, header_of(1, 8), filled(0, 11));
  EXPECT_TRUE(staged_[0]->ready(one));
  EXPECT_FALSE(staged_[0]->ready(two));
  staged_[0]->send(0, Channel::kTensors, header_of(2, 8), filled(0, 12));
  EXPECT_TRUE(staged_[0]->wait(two, 10s).ok());
  EXPECT_TRUE(staged_[0]->wait(one, 10s).ok());
  EXPECT_EQ(first.data[0], std::byte{11});
  EXPECT_EQ(second.data[0], std::byte{12});
}

TEST_F(StagedTransportTest, RefusesAFrameThatThePlanDoesNotExpect) {
  const ReceiveId receive = staged_[0]->post_receive(0, Channel::kTensors, header_of(2, 8), filled(0, 0));
  staged_[0]->send(0, Channel::kTensors, header_of(3, 8), filled(0, 9));
  EXPECT_FALSE(staged_[0]->wait(receive, 10s).ok());
  EXPECT_FALSE(staged_[0]->status().ok());
}

TEST_F(StagedTransportTest, WhoLeavesSendsNoMore) {
  memory_[0].hold();
  const ReceiveId receive = post(0, memory_[1].allocate_zeroed(8));
  send(0, filled(0, 5));
  staged_[0]->leave();
  memory_[0].let_go();
  staged_[0].reset();
  EXPECT_FALSE(staged_[1]->ready(receive));
}

TEST_F(StagedTransportTest, PassesADeathOnAndGoesOnWithoutIt) {
  staged_[1]->need_only({1});
  staged_[0].reset();
  host_[0].reset();
  EXPECT_FALSE(staged_[1]->status().ok());
  EXPECT_EQ(staged_[1]->lost()->worker, 0);
  EXPECT_TRUE(staged_[1]->go_on().ok());
  const Buffer into = memory_[1].allocate_zeroed(8);
  const ReceiveId own = staged_[1]->post_receive(1, Channel::kTensors, header_of(0, 8), into);
  staged_[1]->send(1, Channel::kTensors, header_of(0, 8), filled(1, 4));
  EXPECT_TRUE(staged_[1]->wait(own, 1s).ok());
}

}  // namespace
}  // namespace everstep::trainer
