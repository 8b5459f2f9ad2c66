#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"

namespace everstep::trainer {

// Two workers of generation 5 that send frames to each other all the time.
class RunningJob {
 public:
  explicit RunningJob(const SocketOptions& options = {}) : workers_(2, options), connections_(workers_.connect(5)) {
    training_ = std::thread([this] { train(); });
  }
  ~RunningJob() {
    stopping_ = true;
    if (training_.joinable()) training_.join();
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  PeerConnector& connector() { return *workers_.connectors[0]; }
  const std::string& address() const { return workers_.addresses[0]; }

  // What the job has to say about its last frames: they came, after everything that was done to it.
  Status finish() {
    const std::int64_t before = delivered_;
    comes_true([&] { return delivered_ >= before + 3 || failed_; });
    stopping_ = true;
    training_.join();
    EXPECT_GE(delivered_, before + 3);
    for (const PeerConnection& connection : connections_) EVERSTEP_TRY(connection.transport->status());
    return {};
  }

 private:
  static constexpr std::size_t kFrame = 100'000;

  FrameHeader header() const {
    FrameHeader header;
    header.window = delivered_;
    header.length = kFrame;
    return header;
  }

  void train() {
    while (!stopping_ && !failed_) {
      for (const int from : {0, 1}) {
        Transport& receiver = *connections_[1 - from].transport;
        const ReceiveId receive = receiver.post_receive(from, Channel::kTensors, header(), allocate_zeroed(kFrame));
        connections_[from].transport->send(1 - from, Channel::kTensors, header(), allocate_zeroed(kFrame));
        failed_ = failed_ || !receiver.wait(receive, kSoon) || !connections_[from].transport->flush(kSoon);
      }
      ++delivered_;
    }
  }

  LoopbackWorkers workers_;
  std::vector<PeerConnection> connections_;
  std::atomic<std::int64_t> delivered_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::thread training_;
};

}  // namespace everstep::trainer
