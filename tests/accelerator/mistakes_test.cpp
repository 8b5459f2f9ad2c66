// Mistakes that a GPU would punish rarely and late. Each must be found every time, whatever the timing: when work runs
// at once and the mistake does no harm, and when it runs as late as it may.
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/accelerator/accelerator.h"

namespace everstep::accelerator {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 10000;

// Two streams, and one buffer of each kind.
struct Bench {
  explicit Bench(const Options& options) : device(options) {}

  Accelerator device;
  const StreamId other = device.new_stream();
  void* const buffer = device.allocate(kSize, 0);
  volatile char* const pinned = static_cast<volatile char*>(device.allocate_pinned(kSize));
  void* const pinned_address = const_cast<char*>(pinned);

  void work(StreamId stream, const std::string& what, bool writes) {
    device.launch(stream, what, {{buffer, kSize, writes}}, [] {});
  }
};

enum class Timing { kAtOnce, kLate, kOneQueue, kSettled };

// Runs it under one timing. kSettled: the streams are idle by the time of every host call, so nothing ever goes wrong.
std::vector<Mistake> mistakes_of(const std::function<void(Bench&, const std::function<void()>&)>& program,
                                 Timing timing) {
  Options options;
  options.on_mistake = OnMistake::kRecord;
  if (timing == Timing::kLate) options.laziness = 1h;
  if (timing == Timing::kOneQueue) options.hardware_queues = 1;
  Bench bench(options);
  const auto settle = [&] {
    // By time, not by waiting: a wait would order what the program does not.
    if (timing == Timing::kSettled) std::this_thread::sleep_for(20ms);
  };
  program(bench, settle);
  return bench.device.mistakes();
}

struct Mistakes : testing::TestWithParam<Timing> {
  static std::string only_mistake(const std::function<void(Bench&, const std::function<void()>&)>& program,
                                  MistakeKind kind) {
    const auto found = mistakes_of(program, GetParam());
    EXPECT_EQ(found.size(), 1U);
    if (found.empty()) return "";
    EXPECT_EQ(found.front().kind, kind);
    return found.front().text;
  }
};

INSTANTIATE_TEST_SUITE_P(Timing, Mistakes,
                         testing::Values(Timing::kAtOnce, Timing::kLate, Timing::kOneQueue, Timing::kSettled));

TEST_P(Mistakes, NoneInAProgramThatWaits) {
  EXPECT_THAT(mistakes_of(
                  [](Bench& bench, const auto& settle) {
                    bench.work(0, "produce", true);
                    settle();
                    bench.device.wait(bench.other, bench.device.record(0));
                    bench.work(bench.other, "consume", false);
                    bench.device.copy(bench.other, bench.pinned_address, bench.buffer, kSize);
                    bench.device.record_stream(bench.buffer, bench.other);
                    bench.device.release(bench.buffer);
                    bench.device.synchronize(bench.device.record(bench.other));
                    bench.pinned[3] = 1;
                    bench.device.destroy_stream(bench.other);
                  },
                  GetParam()),
              testing::IsEmpty());
}

TEST_P(Mistakes, NoWaitBetweenTwoStreams) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.work(0, "produce", true);
                  settle();
                  bench.work(bench.other, "consume", false);
                },
                MistakeKind::kRace),
            "'consume' on stream 1 reads what 'produce' on stream 0 writes, and nothing orders them");
}

TEST_P(Mistakes, AnEventRecordedTooEarly) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  const Event event = bench.device.record(0);
                  bench.work(0, "produce", true);
                  settle();
                  bench.device.wait(bench.other, event);
                  bench.work(bench.other, "consume", false);
                },
                MistakeKind::kRace),
            "'consume' on stream 1 reads what 'produce' on stream 0 writes, and nothing orders them");
}

TEST_P(Mistakes, AnEventNeverRecorded) {
  only_mistake([](Bench& bench, const auto& /*settle*/) { bench.device.wait(bench.other, Event{}); },
               MistakeKind::kStream);
}

TEST_P(Mistakes, ACopyOnAWrongStream) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.wait(bench.other, bench.device.record(0));
                  bench.work(0, "produce", true);
                  settle();
                  bench.device.copy(bench.other, bench.pinned_address, bench.buffer, kSize);
                  bench.device.synchronize(bench.other);
                },
                MistakeKind::kRace),
            "'copy to the host' on stream 1 reads what 'produce' on stream 0 writes, and nothing orders them");
}

TEST_P(Mistakes, ABufferOverwrittenWhileItIsRead) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.wait(bench.other, bench.device.record(0));
                  bench.work(bench.other, "consume", false);
                  settle();
                  bench.work(0, "produce the next", true);
                },
                MistakeKind::kRace),
            "'produce the next' on stream 0 writes what 'consume' on stream 1 reads, and nothing orders them");
}

TEST_P(Mistakes, TwoCopiesIntoOnePinnedBuffer) {
  only_mistake(
      [](Bench& bench, const auto& settle) {
        void* const second = bench.device.allocate(kSize, bench.other);
        bench.device.copy(0, bench.pinned_address, bench.buffer, kSize);
        settle();
        bench.device.copy(bench.other, bench.pinned_address, second, kSize);
      },
      MistakeKind::kRace);
}

TEST_P(Mistakes, MemoryFreedUnderAnotherStream) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.wait(bench.other, bench.device.record(0));
                  bench.work(bench.other, "consume", false);
                  settle();
                  bench.device.release(bench.buffer);
                },
                MistakeKind::kFreedMemory),
            "'free' on stream 0 writes what 'consume' on stream 1 reads, and nothing orders them (hint: "
            "record_stream() before the memory is freed)");
}

TEST_P(Mistakes, WorkOnFreedMemory) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.release(bench.buffer);
                  settle();
                  bench.work(0, "consume", false);
                },
                MistakeKind::kFreedMemory),
            "'consume' on stream 0 works on memory that is not allocated");
}

TEST_P(Mistakes, MemoryFreedTwice) {
  only_mistake(
      [](Bench& bench, const auto& /*settle*/) {
        bench.device.release(bench.buffer);
        bench.device.release(bench.buffer);
      },
      MistakeKind::kFreedMemory);
}

TEST_P(Mistakes, PinnedMemoryReadTooEarly) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.copy(0, bench.pinned_address, bench.buffer, kSize);
                  settle();
                  EXPECT_NE(bench.pinned[kSize - 1], 1);
                },
                MistakeKind::kHostTouch),
            "the host reads pinned memory while 'copy to the host' on stream 0 writes it");
}

TEST_P(Mistakes, PinnedMemoryWrittenUnderACopy) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.copy(0, bench.buffer, bench.pinned_address, kSize);
                  settle();
                  bench.pinned[0] = 1;
                },
                MistakeKind::kHostTouch),
            "the host writes pinned memory while 'copy to the device' on stream 0 reads it");
}

TEST_P(Mistakes, AWaitForAnotherCopyThanTheOneThatMatters) {
  only_mistake(
      [](Bench& bench, const auto& settle) {
        const Event before = bench.device.record(0);
        bench.device.copy(0, bench.pinned_address, bench.buffer, kSize);
        settle();
        bench.device.synchronize(before);
        EXPECT_NE(bench.pinned[0], 1);
      },
      MistakeKind::kHostTouch);
}

TEST_P(Mistakes, TheHostReadsDeviceMemory) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  settle();
                  EXPECT_NE(static_cast<volatile char*>(bench.buffer)[1], 1);
                },
                MistakeKind::kHostTouch),
            "the host reads device memory, at byte 1");
}

TEST_P(Mistakes, TheHostWritesDeviceMemory) {
  EXPECT_EQ(only_mistake([](Bench& bench, const auto& /*settle*/) { static_cast<volatile char*>(bench.buffer)[2] = 1; },
                         MistakeKind::kHostTouch),
            "the host writes device memory, at byte 2");
}

// One thread waits for the stream, another one goes on as if it had.
void two_threads(Bench& bench, bool told) {
  bench.work(0, "produce", true);
  Clock known;
  std::thread([&] {
    bench.device.synchronize(StreamId{0});
    known = bench.device.known_here();
  }).join();
  std::thread([&] {
    if (told) bench.device.learn_here(known);
    bench.work(bench.other, "consume", false);
  }).join();
}

TEST_P(Mistakes, TwoHostThreadsWithoutOrder) {
  EXPECT_EQ(only_mistake([](Bench& bench, const auto& /*settle*/) { two_threads(bench, false); }, MistakeKind::kRace),
            "'consume' on stream 1 reads what 'produce' on stream 0 writes, and nothing orders them");
  EXPECT_THAT(mistakes_of([](Bench& bench, const auto& /*settle*/) { two_threads(bench, true); }, GetParam()),
              testing::IsEmpty());
}

TEST_P(Mistakes, AStreamDestroyedWithWork) {
  EXPECT_EQ(only_mistake(
                [](Bench& bench, const auto& settle) {
                  bench.device.launch(bench.other, "work", {}, [] {});
                  settle();
                  bench.device.destroy_stream(bench.other);
                },
                MistakeKind::kStream),
            "stream 1 is destroyed, and its work is not known to be over");
}

TEST_P(Mistakes, AStreamUsedAfterItsEnd) {
  only_mistake(
      [](Bench& bench, const auto& /*settle*/) {
        bench.device.destroy_stream(bench.other);
        bench.device.launch(bench.other, "work", {}, [] {});
      },
      MistakeKind::kStream);
}

TEST_P(Mistakes, AreWatchedForAgainAfterTheyAreTaken) {
  Options options;
  options.on_mistake = OnMistake::kRecord;
  Bench bench(options);
  for (int round = 0; round < 2; ++round) {
    static_cast<volatile char*>(bench.buffer)[0] = 1;
    EXPECT_THAT(bench.device.take_mistakes(), testing::SizeIs(1));
  }
  EXPECT_THAT(bench.device.mistakes(), testing::IsEmpty());
}

TEST(MistakesEndTheProcess, UnlessTheyAreRecorded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Bench bench(Options{});
        bench.work(0, "produce", true);
        bench.work(bench.other, "consume", false);
      },
      "fake accelerator: 'consume' on stream 1 reads what 'produce' on stream 0 writes");
  EXPECT_DEATH(
      {
        Bench bench(Options{});
        static_cast<volatile char*>(bench.buffer)[0] = 1;
      },
      "fake accelerator: the host writes device memory");
}

}  // namespace
}  // namespace everstep::accelerator
