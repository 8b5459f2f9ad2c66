#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/accelerator/access_checker.h"
#include "tests/accelerator/arena.h"
#include "tests/accelerator/block_pool.h"
#include "tests/accelerator/clock.h"
#include "tests/accelerator/fault_handler.h"
#include "tests/accelerator/options.h"
#include "tests/accelerator/pinned_guard.h"
#include "tests/accelerator/stream_threads.h"

namespace everstep::accelerator {

// Bytes that a kernel reads, or also writes, by the address that the host has for them.
struct Access {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

// How libraries that know nothing of LibTorch name a stream, as CUDA's do: nullptr is none of these.
inline void* native_handle(StreamId stream) { return reinterpret_cast<void*>(stream + 1); }
inline StreamId stream_of_handle(const void* handle) { return reinterpret_cast<StreamId>(handle) - 1; }

// A place in a stream's work. A copy is the same place; recording again makes another event.
class Event {
 public:
  bool recorded() const { return place_.has_value(); }

 private:
  friend class Accelerator;
  std::optional<Moment> place_;
  Clock clock_;  // what is over when the place is reached
  std::shared_ptr<std::atomic<std::int64_t>> reached_ns_;
};

// An accelerator that computes on the host's threads and is as unforgiving as a real one: work runs behind the host's
// back, memory of the device is out of the host's reach, and freed memory is used again at once. It finds mistakes
// whether or not they do harm this time: it compares accesses by what orders them (the stream's order, events, waits of
// the host), never by when they happened. Every host thread knows what it has waited for itself.
//
// Safe to call from any host thread, but not from kernels. After a kernel threw, calls that launch or wait throw
// std::runtime_error with its message, as after CUDA's sticky errors.
class Accelerator final : private FaultListener {
 public:
  explicit Accelerator(const Options& options = {});
  ~Accelerator() override;  // when all work is over
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  // Memory for work on `stream`; other streams' work follows an event. Its bytes are 0xFF, NaN as any float, so that
  // reading what nobody wrote shows. Throws std::bad_alloc.
  void* allocate(std::size_t bytes, StreamId stream);

  // Serves its stream again at once, and after what record_stream() told of. It is a mistake if other streams' work on
  // it is neither told of nor known to be over, by the stream or by this thread. nullptr is no memory.
  void release(void* address);

  // Work on `stream`, so far and until the memory is released, uses it. Any of its bytes names it.
  void record_stream(void* address, StreamId stream);

  // Memory of the host that copies reach. The host must not touch what a copy in flight writes, nor write what one
  // reads; a copy is in flight until some host thread knows that it is over. Released memory serves again after that.
  // The host's system calls with such memory fail with EFAULT.
  void* allocate_pinned(std::size_t bytes);
  void release_pinned(void* address);

  bool is_device(const void* address) const { return device_.holds(address); }
  bool is_pinned(const void* address) const { return pinned_.holds(address); }

  // How much memory of the device was ever in use.
  std::size_t device_bytes() const;

  // Where a kernel finds what the host calls `address`. Throws std::invalid_argument for the host's own memory.
  std::byte* kernel_address(const void* address) const;

  // Streams of other workers, which have devices of their own. They share the memory of this one.
  DeviceId new_device(int hardware_queues);

  // There is stream 0 from the beginning.
  StreamId new_stream(DeviceId device = 0);
  void destroy_stream(StreamId stream);  // whose work this thread has to know to be over

  // Runs `kernel`, called `what` in messages, when all before it on the stream is over. It must touch no more than
  // `accesses`, and keep nothing alive that a real kernel would not.
  void launch(StreamId stream, const std::string& what, const std::vector<Access>& accesses,
              std::function<void()> kernel);

  // Between memory of the device and pinned memory, any way.
  void copy(StreamId stream, void* to, const void* from, std::size_t bytes);

  void synchronize(StreamId stream);
  void synchronize_device();
  bool query(StreamId stream);

  // A timed event knows when it was reached; its time is a piece of the stream's work.
  Event record(StreamId stream, bool timed = false);
  void wait(StreamId stream, const Event& event);
  void synchronize(const Event& event);
  bool query(const Event& event);

  // Between two timed events that are known to be over.
  static std::chrono::nanoseconds elapsed(const Event& from, const Event& to);

  // See StreamThreads.
  std::optional<std::uint64_t> stuck_at(const std::function<bool(StreamId)>& waits) const {
    return threads_.stuck_at(waits);
  }

  // For threads of the host that order themselves, as when one passes a buffer to another, or by a message that cannot
  // come before a kernel is over: what this thread knows, or all that is on a stream; and to know it.
  Clock known_here();
  Clock launched_on(StreamId stream);
  void learn_here(const Clock& known);

  // All so far, each text once. take_mistakes() forgets them, and keeps the host from touching again.
  std::vector<Mistake> mistakes() const;
  std::vector<Mistake> take_mistakes();

  Counters counters() const;
  void count_copy(bool to_device);  // that launch() makes

 private:
  struct Stream {
    Clock clock;  // what is over before the next kernel begins
    bool destroyed = false;
  };

  // In fixed memory: written by the signal handler.
  struct Touch {
    std::size_t offset = 0;
    bool writes = false;
    bool pinned = false;
    std::array<char, 100> what{};  // is in flight
  };

  bool on_fault(const void* address, bool writes) override;
  [[noreturn]] static void end_process(const Touch& touch);
  static std::string text_of(const Touch& touch);

  Stream& stream_of(StreamId stream);
  Clock& here();  // of the calling thread
  void enqueue(StreamId stream, const std::string& what, const std::vector<Access>& accesses,
               std::function<void()> kernel);
  void check(const Access& access, const Moment& when, const Clock& known, const std::string& what);
  void learn(const Clock& known);
  void count_wait();
  void report(MistakeKind kind, std::string text);
  void throw_failure() const;
  static ByteRange range_of(const void* begin, std::size_t bytes);

  const Options options_;
  Arena device_;
  Arena pinned_;
  mutable std::mutex mutex_;
  BlockPool device_blocks_;
  BlockPool pinned_blocks_;
  PinnedGuard pinned_guard_;
  AccessChecker checker_;
  std::vector<Stream> streams_;
  std::map<std::uint64_t, Clock> hosts_;  // by thread
  std::vector<Mistake> mistakes_;
  std::array<Touch, 64> touches_{};
  std::size_t touched_ = 0;  // may be more than fit
  Counters counters_;
  std::map<std::uint64_t, std::int64_t> waits_;  // by thread
  StreamThreads threads_;                        // ends first
};

}  // namespace everstep::accelerator
