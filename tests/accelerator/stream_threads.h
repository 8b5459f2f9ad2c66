#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/accelerator/clock.h"
#include "tests/accelerator/options.h"

namespace everstep::accelerator {

// Runs the work of streams behind the host's back: a thread for each stream, in the stream's order. Streams share
// hardware queues in turn; a queue begins its entries in the order they came, so that one which has to wait (for the
// work before it on its stream, or for another stream) holds up those behind it, whatever stream they belong to.
// Safe to call from any thread but those of the streams.
class StreamThreads {
 public:
  explicit StreamThreads(const Options& options) : options_(options) { add_device(options.hardware_queues); }
  ~StreamThreads();  // when all work is over
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  // A device of its own, with so many queues, 0: one for each stream. There is device 0 from the beginning.
  DeviceId add_device(int hardware_queues);

  StreamId add_stream(DeviceId device = 0);

  // Returns the work's number on the stream.
  std::uint64_t run(StreamId stream, std::string what, std::function<void()> work);

  // What comes after it on the stream begins when `moment` is over.
  std::uint64_t wait_on_stream(StreamId stream, const Moment& moment);

  void wait_here(const Moment& moment);
  bool is_over(const Moment& moment) const;

  // How much work is over by now, if no more ever will be by itself: no work can begin, and all that has begun `waits`.
  // Nothing: there may be more. Two equal answers: nothing was over in between.
  std::optional<std::uint64_t> stuck_at(const std::function<bool(StreamId)>& waits) const;

  // Work that threw; the first of it, until the end. No stream stops for it.
  std::optional<std::string> failure() const;

 private:
  struct Task {
    std::string what;
    std::function<void()> work;
    std::optional<Moment> after;  // of another stream
    std::chrono::steady_clock::time_point due;
    std::uint64_t entry = 0;  // in the hardware queue
  };

  struct Stream {
    std::deque<Task> tasks;
    std::uint64_t enqueued = 0;
    std::uint64_t over = 0;
    bool busy = false;
    std::deque<std::uint64_t>* queue = nullptr;  // of the device
    std::condition_variable changed;
    std::thread thread;
  };

  struct Device {
    std::size_t most_queues = 0;
    std::size_t streams = 0;
    std::deque<std::deque<std::uint64_t>> queues{};  // entries that have not begun
  };

  std::uint64_t enqueue(StreamId stream, Task task);
  void serve(Stream& stream);
  bool is_next(const Stream& stream) const;
  bool may_begin(const Stream& stream, std::chrono::steady_clock::time_point now) const;
  bool is_over_locked(const Moment& moment) const;
  void wake();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable host_changed_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::deque<Device> devices_;
  std::uint64_t entries_ = 0;
  int hosts_waiting_ = 0;
  bool ending_ = false;
  std::optional<std::string> failure_;
};

}  // namespace everstep::accelerator
