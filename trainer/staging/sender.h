#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer/model/device_memory.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Hands frames over to a transport in their order, each when the copy of its payload has come: on a thread of its own.
class Sender {
 public:
  struct Frame {
    int to = 0;
    Channel channel = Channel::kTensors;
    FrameHeader header;
    Buffer payload;  // on the host
    Mark is_here;
  };

  explicit Sender(Transport& transport);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender();  // what is still waiting is not sent

  // Never waits.
  void add(Frame frame);

  // Whether a frame would overtake others if it were handed over right now.
  bool has_frames_for(int to, Channel channel);

  // Waits until all have been handed over; false: the time was not enough.
  bool wait_until_empty(std::chrono::steady_clock::time_point deadline);

  // From now on nothing is sent.
  void stop();

 private:
  void run();

  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;  // the front one until it has been handed over
  std::map<std::pair<int, Channel>, std::size_t> waiting_;
  bool stopped_ = false;
  std::thread thread_;
};

// Waits until the senders of a transport have handed all frames over. If that takes too long, the transport ends.
Status hand_out_all(Transport& transport, std::initializer_list<Sender*> senders,
                    std::chrono::steady_clock::time_point deadline);

// For what follows until the same deadline.
std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline);

}  // namespace everstep::trainer
