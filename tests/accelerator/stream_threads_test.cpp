#include "tests/accelerator/stream_threads.h"

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace everstep::accelerator {
namespace {

using namespace std::chrono_literals;

Options with_queues(int queues) {
  Options options;
  options.hardware_queues = queues;
  return options;
}

TEST(StreamThreads, RunAStreamInItsOrder) {
  Options options;
  options.jitter = 200us;
  StreamThreads threads(options);
  const StreamId stream = threads.add_stream();
  std::vector<int> seen;
  std::uint64_t last = 0;
  for (int i = 0; i < 50; ++i) last = threads.run(stream, "push", [&seen, i] { seen.push_back(i); });
  threads.wait_here({stream, last});
  ASSERT_EQ(seen.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(StreamThreads, RunTwoStreamsAtOnce) {
  StreamThreads threads({});
  const StreamId first = threads.add_stream();
  const StreamId second = threads.add_stream();
  std::promise<void> begun;
  threads.run(first, "wait for the other", [&begun] { begun.get_future().wait(); });
  const auto number = threads.run(second, "let it go", [&begun] { begun.set_value(); });
  threads.wait_here({second, number});
  threads.wait_here({first, 1});
}

TEST(StreamThreads, WaitForAMomentOfAnother) {
  StreamThreads threads({});
  const StreamId first = threads.add_stream();
  const StreamId second = threads.add_stream();
  std::promise<void> gate;
  std::atomic<bool> over{false};
  bool seen = false;
  const Moment moment{first, threads.run(first, "slow", [&] {
                        gate.get_future().wait();
                        over = true;
                      })};
  threads.wait_on_stream(second, moment);
  const auto last = threads.run(second, "look", [&] { seen = over; });
  EXPECT_FALSE(threads.is_over({second, last}));
  gate.set_value();
  threads.wait_here({second, last});
  EXPECT_TRUE(seen);
}

TEST(StreamThreads, HoldUpAHardwareQueueBehindAWait) {
  StreamThreads threads(with_queues(1));
  const StreamId first = threads.add_stream();
  const StreamId second = threads.add_stream();
  const StreamId third = threads.add_stream();
  std::promise<void> gate;
  const Moment slow{first, threads.run(first, "slow", [&gate] { gate.get_future().wait(); })};
  const Moment beside{third, threads.run(third, "begins beside it", [] {})};
  threads.wait_here(beside);
  threads.wait_on_stream(second, slow);
  const Moment behind{third, threads.run(third, "has nothing to wait for", [] {})};
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(threads.is_over(behind));
  gate.set_value();
  threads.wait_here(behind);
}

TEST(StreamThreads, AreLazyUntilSomebodyWaits) {
  Options options;
  options.laziness = 1h;
  StreamThreads threads(options);
  const StreamId stream = threads.add_stream();
  const Moment moment{stream, threads.run(stream, "late", [] {})};
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(threads.is_over(moment));
  threads.wait_here(moment);
  EXPECT_TRUE(threads.is_over(moment));
}

TEST(StreamThreads, KeepTheFirstFailure) {
  StreamThreads threads({});
  const StreamId stream = threads.add_stream();
  threads.run(stream, "first", [] { throw std::runtime_error("no such index\nbacktrace"); });
  const auto last = threads.run(stream, "second", [] { throw std::runtime_error("follows"); });
  threads.wait_here({stream, last});
  EXPECT_EQ(threads.failure(), "'first': no such index");
}

}  // namespace
}  // namespace everstep::accelerator
