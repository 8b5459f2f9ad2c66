#include "tests/accelerator/emulated_nccl.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace everstep::accelerator {
namespace {

using namespace std::chrono_literals;
using trainer::CudaEvent;
using trainer::CudaStream;
using trainer::NcclApi;
using trainer::NcclCommunicator;
using trainer::NcclOutcome;
using trainer::NcclUniqueId;

constexpr std::size_t kBytes = 4096;

Options recording() {
  Options options;
  options.on_mistake = OnMistake::kRecord;
  return options;
}

// Both ends in one process.
class EmulatedNccl : public testing::Test {
 protected:
  struct End {
    NcclCommunicator communicator = nullptr;
    CudaStream stream = nullptr;
    void* memory = nullptr;
  };

  void make_ends(bool tells_of_death = false) {
    api_ = emulated_nccl(accelerator_, {.tells_of_death = tells_of_death,
                                        .on_free_amid_transfers = [this] { ++freed_amid_transfers_; }});
    const NcclUniqueId id = api_.get_unique_id().value();
    for (int rank = 0; rank < 2; ++rank) {
      ends_[rank].stream = api_.stream_create().value();
      ends_[rank].memory = api_.allocate(kBytes, ends_[rank].stream).value();
      EXPECT_TRUE(api_.comm_init_rank(&ends_[rank].communicator, id, rank).in_progress());
    }
    for (const End& end : ends_) wait_for(end);
  }

  void wait_for(const End& end) {
    while (api_.comm_get_async_error(end.communicator).in_progress()) std::this_thread::sleep_for(1ms);
  }

  NcclOutcome send(std::size_t bytes = kBytes) {
    return api_.send(ends_[0].memory, bytes, 1, ends_[0].communicator, ends_[0].stream);
  }
  NcclOutcome receive(std::size_t bytes = kBytes) {
    return api_.recv(ends_[1].memory, bytes, 0, ends_[1].communicator, ends_[1].stream);
  }

  CudaEvent event_on(int rank) {
    CudaEvent event = api_.event_create().value();
    EXPECT_TRUE(api_.event_record(event, ends_[rank].stream).done());
    return event;
  }

  void wait_for(CudaEvent event) {
    while (api_.event_query(event).in_progress()) std::this_thread::sleep_for(1ms);
    api_.event_destroy(event);
  }

  void abort_all() {
    for (End& end : ends_) EXPECT_FALSE(api_.comm_revoke(end.communicator).failed());
    for (End& end : ends_) EXPECT_TRUE(api_.comm_abort(end.communicator).done());
    EXPECT_EQ(emulated_communicators(), 0);
  }

  Accelerator accelerator_{recording()};
  NcclApi api_;
  End ends_[2];
  int freed_amid_transfers_ = 0;
};

TEST_F(EmulatedNccl, MovesBytesWhenBothEndsAreThere) {
  make_ends();
  accelerator_.launch(stream_of_handle(ends_[0].stream), "fill", {{ends_[0].memory, kBytes, true}},
                      [at = accelerator_.kernel_address(ends_[0].memory)] { std::memset(at, 7, kBytes); });
  ASSERT_TRUE(send().done());
  CudaEvent const sent = event_on(0);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(api_.event_query(sent).in_progress()) << "a send waits for its receive";
  ASSERT_TRUE(receive().done());
  wait_for(event_on(1));
  wait_for(sent);
  EXPECT_EQ(std::to_integer<int>(accelerator_.kernel_address(ends_[1].memory)[kBytes - 1]), 7);
  abort_all();
  EXPECT_TRUE(accelerator_.take_mistakes().empty());
}

TEST_F(EmulatedNccl, ACommunicatorInProgressMayOnlyBeAskedAbout) {
  api_ = emulated_nccl(accelerator_);
  End alone;
  alone.stream = api_.stream_create().value();
  alone.memory = api_.allocate(kBytes, alone.stream).value();
  ASSERT_TRUE(api_.comm_init_rank(&alone.communicator, api_.get_unique_id().value(), 0).in_progress());
  const NcclOutcome early = api_.send(alone.memory, kBytes, 1, alone.communicator, alone.stream);
  EXPECT_EQ(early.error, "invalid usage: the communicator is in progress");
  EXPECT_TRUE(api_.comm_abort(alone.communicator).done());
}

TEST_F(EmulatedNccl, RefusesWhatNcclWouldBreakOn) {
  make_ends();
  std::byte on_host[8]{};
  EXPECT_EQ(api_.send(on_host, 8, 1, ends_[0].communicator, ends_[0].stream).error,
            "invalid argument: memory of the host");
  EXPECT_EQ(api_.send(ends_[0].memory, 8, 0, ends_[0].communicator, ends_[0].stream).error, "invalid argument: peer");
  ASSERT_TRUE(send(64).done());
  ASSERT_TRUE(receive(32).done());
  wait_for(event_on(1));
  EXPECT_EQ(api_.comm_get_async_error(ends_[1].communicator).error, "send and receive do not match");
  abort_all();
}

TEST_F(EmulatedNccl, AKernelWaitsForADeadPeerUntilItIsAborted) {
  make_ends();
  ASSERT_TRUE(receive().done());
  CudaEvent const received = event_on(1);
  EXPECT_TRUE(api_.comm_abort(ends_[0].communicator).done());
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(api_.event_query(received).in_progress());
  EXPECT_TRUE(api_.comm_get_async_error(ends_[1].communicator).done());
  EXPECT_TRUE(api_.comm_abort(ends_[1].communicator).done());
  wait_for(received);
}

// A GPU may wait for them, and its peer for it.
TEST_F(EmulatedNccl, NoticesACommunicatorThatIsFreedWhileOthersAreAtWork) {
  make_ends();
  ASSERT_TRUE(receive().done());
  EXPECT_TRUE(api_.comm_abort(ends_[0].communicator).done());
  EXPECT_GT(std::exchange(freed_amid_transfers_, 0), 0);
  EXPECT_TRUE(api_.comm_abort(ends_[1].communicator).done());
  EXPECT_EQ(freed_amid_transfers_, 0) << "its own are ended first";
}

TEST_F(EmulatedNccl, IsQuietSomeTimeAfterItWasRevoked) {
  make_ends();
  ASSERT_TRUE(receive().done());
  EXPECT_FALSE(api_.comm_revoke(ends_[1].communicator).failed());
  wait_for(ends_[1]);
  wait_for(event_on(1));
  abort_all();
}

TEST_F(EmulatedNccl, TellsOfADeathIfItIsToldTo) {
  make_ends(true);
  ASSERT_TRUE(receive().done());
  EXPECT_TRUE(api_.comm_abort(ends_[0].communicator).done());
  wait_for(event_on(1));
  EXPECT_EQ(api_.comm_get_async_error(ends_[1].communicator).error,
            "remote process exited or there was a network error");
  EXPECT_TRUE(api_.comm_abort(ends_[1].communicator).done());
}

TEST_F(EmulatedNccl, FinalizesWhenBothEndsDo) {
  make_ends();
  EXPECT_TRUE(api_.comm_finalize(ends_[0].communicator).in_progress());
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(api_.comm_get_async_error(ends_[0].communicator).in_progress());
  EXPECT_TRUE(api_.comm_finalize(ends_[1].communicator).in_progress());
  for (const End& end : ends_) wait_for(end);
  for (const End& end : ends_) EXPECT_TRUE(api_.comm_destroy(end.communicator).done());
  EXPECT_EQ(emulated_communicators(), 0);
}

TEST_F(EmulatedNccl, ATransferThatNothingOrdersIsARace) {
  make_ends();
  const StreamId other = accelerator_.new_stream();
  accelerator_.launch(other, "fill", {{ends_[0].memory, kBytes, true}}, [] {});
  ASSERT_TRUE(send().done());
  ASSERT_TRUE(receive().done());
  wait_for(event_on(1));
  abort_all();
  const auto mistakes = accelerator_.take_mistakes();
  ASSERT_EQ(mistakes.size(), 2) << "the fill and the send, and the fill and the allocation";
}

// The receiver knows that what the sender read may be written again.
TEST_F(EmulatedNccl, WhoHasReceivedKnowsWhatTheSenderKnew) {
  make_ends();
  ASSERT_TRUE(send().done());
  ASSERT_TRUE(receive().done());
  std::thread receiver([&] {
    wait_for(event_on(1));
    const StreamId third = accelerator_.new_stream();
    accelerator_.launch(third, "write", {{ends_[0].memory, kBytes, true}}, [] {});
    accelerator_.synchronize(third);
  });
  receiver.join();
  abort_all();
  EXPECT_TRUE(accelerator_.take_mistakes().empty());
}

}  // namespace

// By way of another process: what it received, it tells when it sends.
TEST(EmulatedNcclProcesses, PassOnWhatTheyHaveHeard) {
  const NcclUniqueId there = [] {
    NcclUniqueId id{};
    const auto pid = ::getpid();
    std::memcpy(id.data(), &pid, sizeof pid);
    id[10] = std::byte{'t'};
    return id;
  }();
  NcclUniqueId back = there;
  back[10] = std::byte{'b'};
  const auto make = [](const NcclApi& api, const NcclUniqueId& id, int rank) {
    NcclCommunicator made = nullptr;
    EXPECT_TRUE(api.comm_init_rank(&made, id, rank).in_progress());
    while (api.comm_get_async_error(made).in_progress()) std::this_thread::sleep_for(1ms);
    return made;
  };
  const auto wait = [](const NcclApi& api, CudaStream stream) {
    CudaEvent const event = api.event_create().value();
    EXPECT_TRUE(api.event_record(event, stream).done());
    while (api.event_query(event).in_progress()) std::this_thread::sleep_for(1ms);
    api.event_destroy(event);
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Accelerator accelerator(recording());
    const NcclApi api = emulated_nccl(accelerator);
    CudaStream const stream = api.stream_create().value();
    void* const memory = api.allocate(64, stream).value();
    NcclCommunicator const in = make(api, there, 1);
    NcclCommunicator const out = make(api, back, 0);
    static_cast<void>(api.recv(memory, 64, 0, in, stream));
    wait(api, stream);
    static_cast<void>(api.send(memory, 64, 1, out, stream));
    wait(api, stream);
    static_cast<void>(api.comm_abort(in));
    static_cast<void>(api.comm_abort(out));
    std::_Exit(0);
  }
  Accelerator accelerator(recording());
  const NcclApi api = emulated_nccl(accelerator);
  CudaStream const first = api.stream_create().value();
  CudaStream const second = api.stream_create().value();
  void* const sent = api.allocate(64, first).value();
  void* const received = api.allocate(64, second).value();
  NcclCommunicator const out = make(api, there, 0);
  NcclCommunicator const in = make(api, back, 1);
  ASSERT_TRUE(api.send(sent, 64, 1, out, first).done());
  ASSERT_TRUE(api.recv(received, 64, 0, in, second).done());
  wait(api, second);
  // Nothing in this process orders it after the send.
  accelerator.launch(stream_of_handle(second), "write", {{sent, 64, true}}, [] {});
  accelerator.synchronize(stream_of_handle(second));
  EXPECT_TRUE(accelerator.take_mistakes().empty());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  static_cast<void>(api.comm_abort(out));
  static_cast<void>(api.comm_abort(in));
}

}  // namespace everstep::accelerator
