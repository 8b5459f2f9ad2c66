#include "tests/accelerator/accelerator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace everstep::accelerator {
namespace {

constexpr std::size_t kBlock = 512;  // as blocks of LibTorch's allocator for CUDA
constexpr std::size_t kMostMistakes = 1000;

std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = ++threads;
  return number;
}

}  // namespace

Accelerator::Accelerator(const Options& options)
    : options_(options),
      device_(options.memory, Rights::kNone),
      pinned_(options.memory, Rights::kAll),
      device_blocks_(device_.size(), kBlock),
      pinned_blocks_(pinned_.size(), kPage),
      pinned_guard_(pinned_),
      threads_(options) {
  new_stream();
  begin_listening(*this);
}

Accelerator::~Accelerator() { end_listening(*this); }

void* Accelerator::allocate(std::size_t bytes, StreamId stream) {
  const std::lock_guard lock(mutex_);
  const auto taken =
      device_blocks_.take(bytes, stream, [this](const Moment& moment) { return threads_.is_over(moment); });
  if (taken.is_new) ++counters_.allocations;
  std::byte* const address = device_.at(taken.block.offset);
  enqueue(stream, "allocation", {{address, taken.block.bytes, true}},
          [seen = kernel_address(address), size = taken.block.bytes] { std::memset(seen, 0xFF, size); });
  return address;
}

void Accelerator::release(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  BlockPool::Block* const block = device_blocks_.find(device_.offset_of(address));
  if (block == nullptr) return report(MistakeKind::kFreedMemory, "memory is freed that is not allocated");
  const auto clock_of = [this](StreamId stream) { return streams_.at(static_cast<std::size_t>(stream)).clock; };
  Clock known = clock_of(block->stream);
  known.learn(here());
  std::vector<Moment> outlasts;
  for (const StreamId guest : block->guests) {
    known.learn(clock_of(guest));
    outlasts.push_back({guest, known.of(guest)});
  }
  // Whoever gets the block next writes to it, and may do so at once.
  const ByteRange range = range_of(address, block->bytes);
  const Moment now{block->stream, known.of(block->stream)};
  for (const std::string& found : checker_.note(range, true, now, known, "free")) {
    report(MistakeKind::kFreedMemory, found + " (hint: record_stream() before the memory is freed)");
  }
  checker_.forget(range);
  device_blocks_.give_back(block->offset, std::move(outlasts));
}

void Accelerator::record_stream(void* address, StreamId stream) {
  const std::lock_guard lock(mutex_);
  BlockPool::Block* const block = device_blocks_.holder_of(device_.offset_of(address));
  if (block == nullptr) return report(MistakeKind::kFreedMemory, "record_stream() of memory that is not allocated");
  auto& guests = block->guests;
  if (stream != block->stream && std::find(guests.begin(), guests.end(), stream) == guests.end()) {
    guests.push_back(stream);
  }
}

void* Accelerator::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto taken = pinned_blocks_.take(bytes, 0, [this](const Moment& moment) { return threads_.is_over(moment); });
  const std::size_t begin = taken.block.offset;
  std::byte* const address = pinned_.at(begin);
  pinned_guard_.end_all(begin, begin + taken.block.bytes);  // over in truth, if not to anybody's knowledge
  checker_.forget(range_of(address, taken.block.bytes));
  return address;
}

void Accelerator::release_pinned(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::size_t offset = pinned_.offset_of(address);
  const BlockPool::Block* const block = pinned_blocks_.find(offset);
  if (block == nullptr) return report(MistakeKind::kFreedMemory, "pinned memory is freed that is not allocated");
  pinned_blocks_.give_back(offset, pinned_guard_.in_flight(offset, offset + block->bytes));
}

std::size_t Accelerator::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return device_blocks_.taken();
}

std::byte* Accelerator::kernel_address(const void* address) const {
  if (device_.holds(address)) return device_.kernel_address(address);
  if (pinned_.holds(address)) return pinned_.kernel_address(address);
  throw std::invalid_argument("the host's own memory is out of a kernel's reach");
}

DeviceId Accelerator::new_device(int hardware_queues) { return threads_.add_device(hardware_queues); }

StreamId Accelerator::new_stream(DeviceId device) {
  const std::lock_guard lock(mutex_);
  streams_.emplace_back();
  return threads_.add_stream(device);
}

void Accelerator::destroy_stream(StreamId id) {
  const std::lock_guard lock(mutex_);
  Stream& stream = stream_of(id);
  if (!here().knows({id, stream.clock.of(id)})) {
    report(MistakeKind::kStream,
           "stream " + std::to_string(id) + " is destroyed, and its work is not known to be over");
  }
  stream.destroyed = true;
}

void Accelerator::launch(StreamId stream, const std::string& what, const std::vector<Access>& accesses,
                         std::function<void()> kernel) {
  const std::lock_guard lock(mutex_);
  throw_failure();
  ++counters_.launches;
  enqueue(stream, what, accesses, std::move(kernel));
}

void Accelerator::copy(StreamId stream, void* to, const void* from, std::size_t bytes) {
  const char* const what = is_device(to) ? (is_device(from) ? "copy" : "copy to the device") : "copy to the host";
  if (is_device(to) != is_device(from)) count_copy(is_device(to));
  launch(stream, what, {{from, bytes, false}, {to, bytes, true}},
         [target = kernel_address(to), source = kernel_address(from), bytes] { std::memcpy(target, source, bytes); });
}

// Everything that runs on a stream comes by here, so that numbers, clocks and the order of the threads agree.
void Accelerator::enqueue(StreamId id, const std::string& what, const std::vector<Access>& accesses,
                          std::function<void()> kernel) {
  Stream& stream = stream_of(id);
  stream.clock.learn(here());
  const Moment when{id, threads_.run(id, what, std::move(kernel))};
  stream.clock.learn(when);
  for (const Access& access : accesses) {
    if (access.bytes > 0) check(access, when, stream.clock, what);
  }
}

void Accelerator::check(const Access& access, const Moment& when, const Clock& known, const std::string& what) {
  const bool on_device = device_.holds(access.begin);
  EVERSTEP_CHECK(on_device || pinned_.holds(access.begin), "a kernel works on device memory or on pinned memory");
  const std::size_t begin = (on_device ? device_ : pinned_).offset_of(access.begin);
  const std::size_t end = begin + access.bytes;
  const BlockPool::Block* const block = (on_device ? device_blocks_ : pinned_blocks_).holder_of(begin);
  if (block == nullptr || end > block->offset + block->bytes) {
    return report(MistakeKind::kFreedMemory,
                  "'" + what + "' on stream " + std::to_string(when.stream) + " works on memory that is not allocated");
  }
  if (!on_device) pinned_guard_.begin({begin, end, access.writes, when, what});
  for (std::string& found : checker_.note(range_of(access.begin, access.bytes), access.writes, when, known, what)) {
    report(MistakeKind::kRace, std::move(found));
  }
}

void Accelerator::synchronize(StreamId stream) {
  std::unique_lock lock(mutex_);
  count_wait();
  const Clock clock = stream_of(stream).clock;
  lock.unlock();
  threads_.wait_here({stream, clock.of(stream)});
  lock.lock();
  learn(clock);
  throw_failure();
}

void Accelerator::synchronize_device() {
  std::unique_lock lock(mutex_);
  count_wait();
  Clock all;
  for (const Stream& stream : streams_) all.learn(stream.clock);
  const auto streams = static_cast<StreamId>(streams_.size());
  lock.unlock();
  for (StreamId id = 0; id < streams; ++id) threads_.wait_here({id, all.of(id)});
  lock.lock();
  learn(all);
  throw_failure();
}

bool Accelerator::query(StreamId id) {
  const std::lock_guard lock(mutex_);
  throw_failure();
  const Clock& clock = stream_of(id).clock;
  if (!threads_.is_over({id, clock.of(id)})) return false;
  learn(clock);
  return true;
}

Event Accelerator::record(StreamId id, bool timed) {
  const std::lock_guard lock(mutex_);
  Event event;
  if (timed) {
    event.reached_ns_ = std::make_shared<std::atomic<std::int64_t>>(0);
    enqueue(id, "time of an event", {}, [reached = event.reached_ns_] {
      *reached =
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
              .count();
    });
  }
  Stream& stream = stream_of(id);
  stream.clock.learn(here());
  event.place_ = Moment{id, stream.clock.of(id)};
  event.clock_ = stream.clock;
  return event;
}

std::chrono::nanoseconds Accelerator::elapsed(const Event& from, const Event& to) {
  if (!from.reached_ns_ || !to.reached_ns_) throw std::invalid_argument("an event without a time");
  return std::chrono::nanoseconds(*to.reached_ns_ - *from.reached_ns_);
}

void Accelerator::wait(StreamId id, const Event& event) {
  const std::lock_guard lock(mutex_);
  Stream& stream = stream_of(id);
  if (!event.recorded()) {
    return report(MistakeKind::kStream, "stream " + std::to_string(id) + " waits for an event that was not recorded");
  }
  stream.clock.learn(event.clock_);
  stream.clock.learn(Moment{id, threads_.wait_on_stream(id, *event.place_)});
}

void Accelerator::synchronize(const Event& event) {
  std::unique_lock lock(mutex_);
  count_wait();
  if (!event.recorded()) return report(MistakeKind::kStream, "the host waits for an event that was not recorded");
  lock.unlock();
  threads_.wait_here(*event.place_);
  lock.lock();
  learn(event.clock_);
  throw_failure();
}

bool Accelerator::query(const Event& event) {
  const std::lock_guard lock(mutex_);
  throw_failure();
  if (!event.recorded()) return true;
  if (!threads_.is_over(*event.place_)) return false;
  learn(event.clock_);
  return true;
}

Clock Accelerator::known_here() {
  const std::lock_guard lock(mutex_);
  return here();
}

Clock Accelerator::launched_on(StreamId stream) {
  const std::lock_guard lock(mutex_);
  return stream_of(stream).clock;
}

void Accelerator::learn_here(const Clock& known) {
  const std::lock_guard lock(mutex_);
  learn(known);
}

Counters Accelerator::counters() const {
  const std::lock_guard lock(mutex_);
  Counters counters = counters_;
  const auto here = waits_.find(this_thread());
  counters.waits_here = here == waits_.end() ? 0 : here->second;
  return counters;
}

void Accelerator::count_copy(bool to_device) {
  const std::lock_guard lock(mutex_);
  ++(to_device ? counters_.copies_to_device : counters_.copies_to_host);
}

Accelerator::Stream& Accelerator::stream_of(StreamId id) {
  Stream& stream = streams_.at(static_cast<std::size_t>(id));
  if (stream.destroyed) {
    report(MistakeKind::kStream, "stream " + std::to_string(id) + " is used after it was destroyed");
  }
  return stream;
}

Clock& Accelerator::here() { return hosts_[this_thread()]; }

void Accelerator::count_wait() {
  ++counters_.waits;
  ++waits_[this_thread()];
}

void Accelerator::learn(const Clock& known) {
  here().learn(known);
  pinned_guard_.end_known(here());
}

void Accelerator::report(MistakeKind kind, std::string text) {
  if (options_.on_mistake == OnMistake::kEndProcess) {
    std::fprintf(stderr, "fake accelerator: %s\n", text.c_str());
    std::abort();
  }
  const auto is_same = [&](const Mistake& each) { return each.text == text; };
  if (mistakes_.size() >= kMostMistakes || std::any_of(mistakes_.begin(), mistakes_.end(), is_same)) return;
  mistakes_.push_back({kind, std::move(text)});
}

void Accelerator::throw_failure() const {
  if (const auto failure = threads_.failure()) throw std::runtime_error("fake accelerator: " + *failure);
}

ByteRange Accelerator::range_of(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  return {address, address + bytes};
}

}  // namespace everstep::accelerator
