#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/socket/byte_stream.h"
#include "trainer/socket/event_flag.h"

namespace everstep::trainer {

// Closes connections so that what was written to them still arrives. A TCP connection that is closed while there is
// something unread is broken off by the kernel, and takes what is on its way along. So each is told that nothing more
// comes, and read until the other side says the same, for kTimeToClose at most. Its thread ends when nothing is left.
// Within a host what was written arrives anyway, and the connection is closed at once. Thread-safe.
class ClosingStreams {
 public:
  static constexpr std::chrono::milliseconds kTimeToClose{2000};

  ClosingStreams() = default;
  ~ClosingStreams();  // waits until what was written has arrived; what nobody reads at the other end is given up then
  ClosingStreams(const ClosingStreams&) = delete;
  ClosingStreams& operator=(const ClosingStreams&) = delete;

  void take(std::unique_ptr<ByteStream> stream);

 private:
  using Clock = std::chrono::steady_clock;
  struct Closing {
    std::unique_ptr<ByteStream> stream;
    Clock::time_point until;
  };

  void run();

  EventFlag news_;
  std::mutex mutex_;  // guards all below
  std::vector<Closing> taken_;
  bool is_running_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace everstep::trainer
