#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "launcher/chaos/far_host.h"
#include "tests/temporary_directory.h"
#include "tests/trainer/ucx/worker_processes.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// One clock for all processes of a machine.
std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FrameHeader header(std::size_t length, std::int64_t window = 1) {
  FrameHeader header;
  header.window = window;
  header.length = length;
  return header;
}

Result<FrameHeader> receive(Transport& transport, int from, std::size_t length, std::chrono::milliseconds timeout) {
  return transport.wait(transport.post_receive(from, Channel::kTensors, header(length), allocate_zeroed(length)),
                        timeout);
}

// Sends frames around a ring until something happens; what that was.
std::string run_ring(Transport& transport, std::size_t bytes) {
  const int next = (transport.worker() + 1) % transport.workers();
  const int previous = (transport.worker() + transport.workers() - 1) % transport.workers();
  const Buffer payload = allocate_zeroed(bytes);
  while (true) {
    transport.send(next, Channel::kTensors, header(bytes), payload);
    const Result<FrameHeader> received = receive(transport, previous, bytes, 10s);
    if (!received) return received.error().line();
  }
}

TEST(UcxProcesses, ExchangeFramesAndLeaveInPeace) {
  WorkerProcesses workers(4, [](UcxConnection& connection, const auto&) -> std::string {
    Transport& transport = *connection.transport;
    for (int peer = 0; peer < 4; ++peer) {
      transport.send(peer, Channel::kTensors, header(1 << 20), allocate_zeroed(1 << 20));
    }
    for (int peer = 0; peer < 4; ++peer) {
      const Result<FrameHeader> received = receive(transport, peer, 1 << 20, 10s);
      if (!received) return received.error().line();
    }
    const Status closed = transport.close(10s);
    return closed ? "fine" : closed.error().line();
  });
  for (int worker = 0; worker < 4; ++worker) EXPECT_EQ(workers.finish(worker), "fine");
}

// The last worker does nothing, and the others wait for it: when they gave it up, and why.
std::string wait_for_the_last(UcxConnection& connection, const std::function<void()>& ready) {
  Transport& transport = *connection.transport;
  const int last = transport.workers() - 1;
  ready();
  if (transport.worker() == last) std::this_thread::sleep_for(1h);
  const Result<FrameHeader> received = receive(transport, last, 8, 10s);
  return std::to_string(now_us()) + " " + received.error().line();
}

void expect_death_is_seen(WorkerProcesses& workers, int last, std::int64_t since, std::chrono::microseconds within) {
  for (int survivor = 0; survivor < last; ++survivor) {
    const std::string report = workers.finish(survivor);
    const std::int64_t elapsed = std::stoll(report) - since;
    std::cout << "worker " << survivor << " saw the death after " << elapsed << " us\n";
    EXPECT_LT(elapsed, within.count());
    EXPECT_THAT(report, HasSubstr("worker " + std::to_string(last) + " died"));
  }
}

TEST(UcxProcesses, AKilledPeerIsSeenWithinMilliseconds) {
  WorkerProcesses workers(4, wait_for_the_last);
  workers.wait_until_ready();
  std::this_thread::sleep_for(20ms);
  const std::int64_t killed = now_us();
  workers.send_signal(3, SIGKILL);
  expect_death_is_seen(workers, 3, killed, 200ms);
  EXPECT_EQ(workers.finish(3), "signal 9");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

// No kernel tells of it: what is sent there goes out, and nothing comes back. All workers of a host are lost with it,
// also those that nobody waits for.
TEST(UcxProcesses, AHostThatIsCutOffIsSeenWithinThreeSeconds) {
  const TemporaryDirectory directory;
  const auto far = launcher::chaos::FarHost::start(directory.file("far-host.log"));
  ASSERT_TRUE(far) << far.error().line();
  const WorkerPlace here{(*far)->near_address()};
  const WorkerPlace there{(*far)->far_address(), (*far)->pid()};
  WorkerProcesses workers({here, there, there}, [](UcxConnection& connection, const std::function<void()>& ready) {
    std::string report = wait_for_the_last(connection, ready);
    while (connection.transport->worker() == 0 && connection.news->look_for_dead().size() < 2) {
      std::this_thread::sleep_for(1ms);
    }
    return report + " all by " + std::to_string(now_us());
  });
  workers.wait_until_ready();
  std::this_thread::sleep_for(200ms);  // until all that was written has been acknowledged
  const std::int64_t cut = now_us();
  ASSERT_TRUE((*far)->cut(launcher::chaos::FarHost::Cut::kPeers));
  const std::string report = workers.finish(0);
  constexpr std::string_view kAllBy = " all by ";
  const std::int64_t elapsed = std::stoll(report.substr(report.find(kAllBy) + kAllBy.size())) - cut;
  std::cout << "both deaths were seen after " << elapsed << " us\n";
  EXPECT_LT(elapsed, 3'000'000) << report;
  EXPECT_TRUE((*far)->heal()) << "lines that cannot be closed keep that network for a minute";
}

TEST(UcxProcesses, SurvivorsOfAKillAmidTransfersNeverCrash) {
  for (const std::size_t bytes : {1000UL, 1UL << 20, 8UL << 20}) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      WorkerProcesses workers(3, [bytes](UcxConnection& connection, const std::function<void()>& ready) {
        Transport& transport = *connection.transport;
        ready();
        return run_ring(transport, bytes);
      });
      workers.wait_until_ready();
      std::this_thread::sleep_for(attempt * 7ms);
      workers.send_signal(1, SIGKILL);
      // Survivors end too, so the second to notice may see either.
      for (const int survivor : {0, 2}) EXPECT_THAT(workers.finish(survivor), HasSubstr(" died (hint"));
    }
  }
}

TEST(UcxProcesses, AStoppedPeerIsADeadlineAndNotAHang) {
  WorkerProcesses workers(2, [](UcxConnection& connection, const std::function<void()>& ready) -> std::string {
    Transport& transport = *connection.transport;
    ready();
    if (transport.worker() == 1) std::this_thread::sleep_for(1h);
    transport.send(1, Channel::kTensors, header(4 << 20), allocate_zeroed(4 << 20));
    const std::string wait = receive(transport, 1, 8, 200ms).error().line();
    return wait;
  });
  workers.wait_until_ready();
  workers.send_signal(1, SIGSTOP);
  EXPECT_THAT(workers.finish(0), HasSubstr("did not come from worker 1 within 200 ms"));
  workers.send_signal(1, SIGKILL);
  EXPECT_EQ(workers.finish(1), "signal 9");
}

TEST(UcxProcesses, AWaitingWorkerUsesNoProcessor) {
  const auto processor_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& time) { return time.tv_sec * 1000 + time.tv_usec / 1000; };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
  };
  WorkerProcesses workers(2, [&](UcxConnection& connection, const auto&) -> std::string {
    Transport& transport = *connection.transport;
    transport.send(1 - transport.worker(), Channel::kTensors, header(8), allocate_zeroed(8));
    if (!receive(transport, 1 - transport.worker(), 8, 10s)) return "1000000";
    const std::int64_t before = processor_ms();
    static_cast<void>(receive(transport, 1 - transport.worker(), 8, 500ms));
    return std::to_string(processor_ms() - before);
  });
  for (int worker = 0; worker < 2; ++worker) {
    const std::string used_ms = workers.finish(worker);
    std::cout << "worker " << worker << " used " << used_ms << " ms in 500 ms\n";
    EXPECT_LE(std::stoll(used_ms), 10);
  }
}

}  // namespace
}  // namespace everstep::trainer
