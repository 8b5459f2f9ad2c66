#include "tests/accelerator/accelerator.h"

#include <chrono>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::accelerator {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kInts = 5000;
constexpr std::size_t kBytes = kInts * sizeof(int);

// Adds to all ints of a buffer, slowly.
void add(Accelerator& device, StreamId stream, void* buffer, int addend) {
  device.launch(stream, "add", {{buffer, kBytes, true}}, [seen = device.kernel_address(buffer), addend] {
    std::this_thread::sleep_for(1ms);
    for (std::size_t i = 0; i < kInts; ++i) reinterpret_cast<int*>(seen)[i] += addend;
  });
}

Options recording(std::chrono::microseconds laziness = 0us) {
  Options options;
  options.on_mistake = OnMistake::kRecord;
  options.laziness = laziness;
  return options;
}

TEST(Accelerator, CopiesThereAndBack) {
  Accelerator device;
  auto* const pinned = static_cast<int*>(device.allocate_pinned(kBytes));
  for (std::size_t i = 0; i < kInts; ++i) pinned[i] = static_cast<int>(i);
  void* const buffer = device.allocate(kBytes, 0);
  device.copy(0, buffer, pinned, kBytes);
  add(device, 0, buffer, 7);
  device.copy(0, pinned, buffer, kBytes);
  device.synchronize(StreamId{0});
  for (std::size_t i = 0; i < kInts; ++i) EXPECT_EQ(pinned[i], static_cast<int>(i) + 7);
  const Counters counters = device.counters();
  EXPECT_EQ(counters.launches, 3);
  EXPECT_EQ(counters.waits, 1);
  EXPECT_EQ(counters.allocations, 1);
  EXPECT_EQ(counters.copies_to_device, 1);
  EXPECT_EQ(counters.copies_to_host, 1);
}

TEST(Accelerator, NewMemoryIsNotANumber) {
  Accelerator device;
  auto* const pinned = static_cast<float*>(device.allocate_pinned(8));
  void* const buffer = device.allocate(8, 0);
  device.copy(0, pinned, buffer, 8);
  device.synchronize(StreamId{0});
  EXPECT_NE(pinned[0], pinned[0]);
}

TEST(Accelerator, EventsOrderStreamsAndTheHost) {
  for (const int queues : {0, 1, 2}) {
    Options options;
    options.hardware_queues = queues;
    options.jitter = 300us;
    Accelerator device(options);
    auto* const pinned = static_cast<int*>(device.allocate_pinned(kBytes));
    std::memset(pinned, 0, kBytes);
    const StreamId compute = device.new_stream();
    const StreamId transfer = device.new_stream();
    void* const buffer = device.allocate(kBytes, compute);
    device.record_stream(buffer, transfer);
    for (int round = 1; round <= 10; ++round) {
      device.wait(transfer, device.record(compute));
      device.copy(transfer, buffer, pinned, kBytes);
      device.wait(compute, device.record(transfer));
      add(device, compute, buffer, 1);
      device.wait(transfer, device.record(compute));
      device.copy(transfer, pinned, buffer, kBytes);
      device.synchronize(device.record(transfer));
      EXPECT_EQ(pinned[kInts - 1], round);
    }
    device.release(buffer);
  }
}

TEST(Accelerator, TimesWorkByEvents) {
  Accelerator device;
  void* const buffer = device.allocate(kBytes, 0);
  const Event begin = device.record(0, true);
  add(device, 0, buffer, 1);
  const Event end = device.record(0, true);
  device.synchronize(end);
  EXPECT_GE(Accelerator::elapsed(begin, end), 1ms);
  EXPECT_THROW(Accelerator::elapsed(begin, device.record(0)), std::invalid_argument);
}

TEST(Accelerator, AQueryThatSaysYesOrdersToo) {
  Accelerator device(recording());
  auto* const pinned = static_cast<int*>(device.allocate_pinned(kBytes));
  void* const buffer = device.allocate(kBytes, 0);
  device.copy(0, pinned, buffer, kBytes);
  const Event event = device.record(0);
  while (!device.query(event)) std::this_thread::yield();
  pinned[0] = 1;
  EXPECT_THAT(device.mistakes(), testing::IsEmpty());
}

// As when a peer answers what a kernel sent.
TEST(Accelerator, AMessageThatCannotComeBeforeAKernelIsOverOrdersToo) {
  Accelerator device(recording());
  const StreamId other = device.new_stream();
  void* const buffer = device.allocate(kBytes, 0);
  std::promise<void> message;
  device.launch(0, "send", {{buffer, kBytes, false}}, [&message] { message.set_value(); });
  const Clock sent = device.launched_on(0);
  message.get_future().wait();
  device.learn_here(sent);
  add(device, other, buffer, 1);
  EXPECT_THAT(device.mistakes(), testing::IsEmpty());
}

TEST(Accelerator, UsesFreedMemoryOnItsStreamAtOnce) {
  Accelerator device(recording(1h));
  void* const first = device.allocate(kBytes, 0);
  device.release(first);
  EXPECT_EQ(device.allocate(kBytes, 0), first);
  EXPECT_NE(device.allocate(kBytes, device.new_stream()), first);
}

TEST(Accelerator, UsesRecordedMemoryWhenItsGuestsAreDone) {
  Accelerator device(recording(1h));
  const StreamId guest = device.new_stream();
  void* const first = device.allocate(kBytes, 0);
  device.wait(guest, device.record(0));
  add(device, guest, first, 1);
  device.record_stream(first, guest);
  device.release(first);
  EXPECT_NE(device.allocate(kBytes, 0), first);
  device.synchronize(guest);
  EXPECT_EQ(device.allocate(kBytes, 0), first);
  EXPECT_THAT(device.mistakes(), testing::IsEmpty());
}

TEST(Accelerator, PinnedMemoryServesAgainWhenItsCopyIsOver) {
  Accelerator device(recording(1h));
  void* const buffer = device.allocate(kBytes, 0);
  void* const first = device.allocate_pinned(kBytes);
  device.copy(0, first, buffer, kBytes);
  device.release_pinned(first);
  EXPECT_NE(device.allocate_pinned(kBytes), first);
  device.synchronize(StreamId{0});
  EXPECT_EQ(device.allocate_pinned(kBytes), first);
}

// Two records in one page: who reads one of them may do so while the other is on its way.
TEST(Accelerator, LetsTheHostTouchTheNeighbourOfWhatIsInFlight) {
  Accelerator device(recording(1h));
  auto* const pinned = static_cast<int*>(device.allocate_pinned(64));
  void* const buffer = device.allocate(32, 0);
  device.copy(0, pinned, buffer, 32);
  pinned[8] = 5;
  EXPECT_EQ(pinned[8], 5);
  EXPECT_THAT(device.mistakes(), testing::IsEmpty());
}

TEST(Accelerator, LetsTheHostReadWhatACopyReads) {
  Accelerator device(recording(1h));
  auto* const pinned = static_cast<int*>(device.allocate_pinned(kBytes));
  pinned[3] = 4;
  device.copy(0, device.allocate(kBytes, 0), pinned, kBytes);
  EXPECT_EQ(pinned[3], 4);
  EXPECT_THAT(device.mistakes(), testing::IsEmpty());
}

TEST(Accelerator, TellsOfAFailedKernelAtTheNextWait) {
  Accelerator device;
  device.launch(0, "break", {}, [] { throw std::runtime_error("broken"); });
  try {
    device.synchronize(StreamId{0});
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "fake accelerator: 'break': broken");
  }
  EXPECT_THROW(device.launch(0, "next", {}, [] {}), std::runtime_error);
}

TEST(Accelerator, KeepsKernelsOffTheHostsOwnMemory) {
  const Accelerator device;
  const int own = 0;
  EXPECT_THROW(device.kernel_address(&own), std::invalid_argument);
}

}  // namespace
}  // namespace everstep::accelerator
