#include "trainer/nccl/nccl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/nccl/scripted_nccl.h"
#include "tests/trainer/wire/transport_contract.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Aborting happens in a thread of its own, for which a busy machine may have no time at once.
constexpr std::chrono::milliseconds kPatience = 10s;

std::vector<std::unique_ptr<Transport>> make_nccl_transports(ScriptedNccl& nccl, int workers,
                                                             std::chrono::milliseconds abort_limit = kPatience) {
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(workers);
  for (auto& transport : transports) {
    transport = make_nccl_transport(nccl.api(), std::move(transport), {.abort_limit = abort_limit}).value();
  }
  return transports;
}

// The script must outlive the transports of a test, so each of them gets one that is never taken away.
TransportMaker scripted(const std::string& name, const std::function<void(ScriptedNccl&)>& play) {
  return {name,
          [play](int workers) {
            static std::vector<std::unique_ptr<ScriptedNccl>> scripts;
            scripts.push_back(std::make_unique<ScriptedNccl>());
            play(*scripts.back());
            return make_nccl_transports(*scripts.back(), workers);
          },
          false};
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportContract,
                         testing::Values(scripted("Prompt", [](ScriptedNccl&) {}), scripted("Slow",
                                                                                            [](ScriptedNccl& nccl) {
                                                                                              nccl.init_polls = 3;
                                                                                              nccl.launch_polls = 2;
                                                                                            })),
                         maker_name);

class NcclTransport : public testing::Test {
 protected:
  static FrameHeader header(std::size_t length) {
    FrameHeader header;
    header.length = length;
    return header;
  }

  void start() { workers_ = make_nccl_transports(nccl_, 2); }

  void send() { workers_[0]->send(1, Channel::kTensors, header(64), allocate_zeroed(64)); }

  Result<FrameHeader> receive(std::chrono::milliseconds timeout) {
    const ReceiveId receive = workers_[1]->post_receive(0, Channel::kTensors, header(64), allocate_zeroed(64));
    return workers_[1]->wait(receive, timeout);
  }

  // Position of a call among all calls, or -1.
  int position(const std::string& call) const {
    const std::vector<std::string> calls = nccl_.calls();
    const auto found = std::find(calls.begin(), calls.end(), call);
    return found == calls.end() ? -1 : static_cast<int>(found - calls.begin());
  }

  ScriptedNccl nccl_;
  std::vector<std::unique_ptr<Transport>> workers_;
};

TEST_F(NcclTransport, MakesACommunicatorPerLinkWhenItIsFirstUsed) {
  start();
  EXPECT_EQ(nccl_.communicators(), 0);
  send();
  ASSERT_TRUE(receive(5s));
  EXPECT_THAT(nccl_.calls(), UnorderedElementsAre("init 0", "init 1", "recv 1", "send 0"));
  send();
  ASSERT_TRUE(receive(5s));
  EXPECT_EQ(nccl_.communicators(), 2) << "one for each end of the only link in use";
}

TEST_F(NcclTransport, DoesNotTouchACommunicatorThatIsStillBeingMade) {
  nccl_.init_polls = 7;  // the script fails a transfer that comes too early
  start();
  send();
  const Result<FrameHeader> received = receive(5s);
  EXPECT_TRUE(received) << received.error();
}

TEST_F(NcclTransport, DoesNotTakeATransferForDoneBeforeItIsOnTheStream) {
  nccl_.launch_polls = 7;
  start();
  send();
  send();
  ASSERT_TRUE(receive(5s));
  ASSERT_TRUE(receive(5s));
}

TEST_F(NcclTransport, ACommunicatorThatIsNeverMadeEndsAtTheDeadline) {
  nccl_.init_ends = false;
  start();
  send();
  const Result<FrameHeader> received = receive(50ms);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(nccl_.count("abort"), 1);
  EXPECT_LT(position("revoke 1"), position("abort 1"));
  workers_.clear();
  EXPECT_EQ(nccl_.communicators(), 0);
}

TEST_F(NcclTransport, AnAsynchronousErrorAbortsEachCommunicatorOnce) {
  nccl_.fail_transfers = true;
  start();
  send();
  const Result<FrameHeader> received = receive(5s);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(received.error().message, HasSubstr("remote error"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(workers_[1]->status().error(), received.error());
  workers_.clear();
  EXPECT_EQ(nccl_.count("abort"), 2);
  EXPECT_EQ(nccl_.count("revoke"), 2);
  EXPECT_EQ(nccl_.count("destroy"), 0);
  EXPECT_EQ(nccl_.communicators(), 0);
}

TEST_F(NcclTransport, AnAbortThatHangsIsBoundedAndSaysToEndTheProcess) {
  nccl_.fail_transfers = true;
  nccl_.abort_hangs = true;
  workers_ = make_nccl_transports(nccl_, 2, 100ms);
  send();
  const auto begin = std::chrono::steady_clock::now();
  const Result<FrameHeader> received = receive(5s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  ASSERT_FALSE(received);
  EXPECT_THAT(received.error().hint, HasSubstr("within 100 ms: end this process"));
  nccl_.let_abort_go();
  workers_.clear();
  while (nccl_.communicators() > 0) std::this_thread::sleep_for(1ms);  // the threads that hung are done
}

TEST_F(NcclTransport, ARefusedHeaderAbortsTheCommunicators) {
  start();
  send();
  const ReceiveId receive = workers_[1]->post_receive(0, Channel::kTensors, header(32), allocate_zeroed(32));
  EXPECT_EQ(workers_[1]->wait(receive, 5s).error().code, ErrorCode::kInternal);
  workers_.clear();
  EXPECT_EQ(nccl_.communicators(), 0);
}

TEST_F(NcclTransport, ADeathEndsTheCommunicatorsOfTheSurvivor) {
  start();
  send();
  ASSERT_TRUE(receive(5s));
  workers_[1].reset();
  EXPECT_EQ(workers_[0]->status().error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(workers_[0]->status().error().message, HasSubstr("worker 1"));
  EXPECT_EQ(nccl_.communicators(), 0);
}

TEST_F(NcclTransport, ClosingFinalizesAndDestroysAndAbortsNothing) {
  start();
  send();
  ASSERT_TRUE(receive(5s));
  std::thread other([&] { EXPECT_TRUE(workers_[0]->close(5s)); });
  EXPECT_TRUE(workers_[1]->close(5s));
  other.join();
  EXPECT_EQ(nccl_.count("finalize"), 2);
  EXPECT_EQ(nccl_.count("destroy"), 2);
  EXPECT_LT(position("finalize 0"), position("destroy 0"));
  workers_.clear();
  EXPECT_EQ(nccl_.count("abort"), 0);
  EXPECT_EQ(nccl_.communicators(), 0);
  EXPECT_EQ(nccl_.streams(), 0);
  EXPECT_EQ(nccl_.events(), 0);
}

TEST_F(NcclTransport, RecordsNeverTouchTheGpu) {
  start();
  workers_[0]->send(1, Channel::kRecords, header(8), allocate_zeroed(8));
  const ReceiveId receive = workers_[1]->post_receive(0, Channel::kRecords, header(8), allocate_zeroed(8));
  EXPECT_TRUE(workers_[1]->wait(receive, 5s));
  EXPECT_TRUE(nccl_.calls().empty());
}

TEST_F(NcclTransport, NeedsAGpuAndAnNcclThatCanRevoke) {
  nccl_.version = 22809;
  auto hosts = make_thread_transports(2);
  EXPECT_THAT(make_nccl_transport(nccl_.api(), std::move(hosts[0]), {}).error().message, HasSubstr("22809"));
  nccl_.version = 23007;
  nccl_.has_device = false;
  EXPECT_THAT(make_nccl_transport(nccl_.api(), std::move(hosts[1]), {.device = 3}).error().message,
              HasSubstr("GPU 3: no such device"));
}

}  // namespace
}  // namespace everstep::trainer
