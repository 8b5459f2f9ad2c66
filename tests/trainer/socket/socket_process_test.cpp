#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/trainer/socket/mortal_work.h"
#include "tests/trainer/socket/wires.h"
#include "tests/trainer/socket/worker_processes.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class SocketProcesses : public OverEachWire {};

// Sends frames around a ring until something happens; what that was.
std::string run_ring(Transport& transport, std::size_t bytes) {
  const int next = (transport.worker() + 1) % transport.workers();
  const int previous = (transport.worker() + transport.workers() - 1) % transport.workers();
  const Buffer payload = allocate_zeroed(bytes);
  while (true) {
    transport.send(next, Channel::kTensors, header(bytes), payload);
    const Result<FrameHeader> received = receive(transport, previous, bytes, 30s);
    if (!received) return received.error().line();
  }
}

TEST_P(SocketProcesses, ExchangeFramesAndLeaveInPeace) {
  WorkerProcesses workers(GetParam(), 4, [](PeerConnection& connection, const auto&) -> std::string {
    Transport& transport = *connection.transport;
    for (int peer = 0; peer < 4; ++peer) {
      transport.send(peer, Channel::kTensors, header(1 << 20), allocate_zeroed(1 << 20));
    }
    for (int peer = 0; peer < 4; ++peer) {
      const Result<FrameHeader> received = receive(transport, peer, 1 << 20, 30s);
      if (!received) return received.error().line();
    }
    const Status closed = transport.close(30s);
    return closed ? "fine" : closed.error().line();
  });
  for (int worker = 0; worker < 4; ++worker) EXPECT_EQ(workers.finish(worker), "fine");
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

// Milliseconds on an idle machine; on any, long before a lost host would be given up.
TEST_P(SocketProcesses, AKilledPeerIsSeenAtOnce) {
  WorkerProcesses workers(GetParam(), 4, wait_for_the_last);
  workers.wait_until_ready();
  std::this_thread::sleep_for(20ms);
  const std::int64_t killed = now_us();
  workers.send_signal(3, SIGKILL);
  expect_death_is_seen(workers, 3, killed, 1500ms);
  EXPECT_EQ(workers.finish(3), "signal 9");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

TEST_P(SocketProcesses, SurvivorsOfAKillAmidTransfersNeverCrash) {
  for (const std::size_t bytes : {1000UL, 1UL << 20, 8UL << 20}) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      WorkerProcesses workers(GetParam(), 3, [bytes](PeerConnection& connection, const std::function<void()>& ready) {
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

TEST_P(SocketProcesses, AStoppedPeerIsADeadlineAndNotAHang) {
  WorkerProcesses workers(GetParam(), 2, [](PeerConnection& connection, const auto& ready) -> std::string {
    Transport& transport = *connection.transport;
    ready();
    if (transport.worker() == 1) std::this_thread::sleep_for(1h);
    transport.send(1, Channel::kTensors, header(4 << 20), allocate_zeroed(4 << 20));
    return receive(transport, 1, 8, 200ms).error().line();
  });
  workers.wait_until_ready();
  workers.send_signal(1, SIGSTOP);
  EXPECT_THAT(workers.finish(0), HasSubstr("did not come from worker 1 within 200 ms"));
  workers.send_signal(1, SIGKILL);
  EXPECT_EQ(workers.finish(1), "signal 9");
}

constexpr std::size_t kMoreThanKernelsTake = 16 << 20;

// Its kernel answers for it. Only lifelines are given up on, which are never full: a window that is closed counts as
// silence there.
TEST_P(SocketProcesses, AStoppedPeerKeepsItsConnectionsHoweverFullTheyAre) {
  WorkerProcesses workers(GetParam(), 2, [](PeerConnection& connection, const auto& ready) -> std::string {
    Transport& transport = *connection.transport;
    ready();
    if (transport.worker() == 1) {
      ::raise(SIGSTOP);
      const Result<FrameHeader> received = receive(transport, 0, kMoreThanKernelsTake, 30s);
      if (!received) return received.error().line();
    } else {
      transport.send(1, Channel::kTensors, header(kMoreThanKernelsTake), allocate_zeroed(kMoreThanKernelsTake));
      if (const Status flushed = transport.flush(60s); !flushed) return flushed.error().line();
    }
    const Status closed = transport.close(30s);
    return closed ? "fine" : closed.error().line();
  });
  workers.wait_until_ready();
  std::this_thread::sleep_for(5s);  // a lost host would be given up after two
  workers.send_signal(1, SIGCONT);
  for (const int worker : {0, 1}) EXPECT_EQ(workers.finish(worker), "fine");
}

TEST_P(SocketProcesses, AWaitingWorkerUsesNoProcessor) {
  const auto processor_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& time) { return time.tv_sec * 1000 + time.tv_usec / 1000; };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
  };
  WorkerProcesses workers(GetParam(), 2, [&](PeerConnection& connection, const auto&) -> std::string {
    Transport& transport = *connection.transport;
    transport.send(1 - transport.worker(), Channel::kTensors, header(8), allocate_zeroed(8));
    if (!receive(transport, 1 - transport.worker(), 8, 30s)) return "1000000";
    const std::int64_t before = processor_ms();
    static_cast<void>(receive(transport, 1 - transport.worker(), 8, 500ms));
    return std::to_string(processor_ms() - before);
  });
  for (int worker = 0; worker < 2; ++worker) {
    const std::string used_ms = workers.finish(worker);
    std::cout << "worker " << worker << " used " << used_ms << " ms in 500 ms\n";
    EXPECT_LE(std::stoll(used_ms), 50);
  }
}

INSTANTIATE_TEST_SUITE_P(, SocketProcesses, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
