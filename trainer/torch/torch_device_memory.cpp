#include "trainer/torch/torch_device_memory.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "base/check.h"
#include "trainer/torch/device_buffers.h"
#include "trainer/torch/ops.h"
#include "trainer/update/loops.h"

namespace everstep::trainer {
namespace {

constexpr std::size_t kNotesOfPage = 512;
constexpr std::size_t kNoteBytes = sizeof(std::uint64_t);

// A device that fails leaves nothing that could be trusted.
template <typename Function>
auto or_end(const char* what, const Function& function) -> decltype(function()) {
  try {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    return function();
  } catch (const c10::Error& error) {
    EVERSTEP_CHECK(false, std::string(what) + " failed on the device: " + error.what_without_backtrace());
  }
}

class EventMark final : public DeviceMark {
 public:
  explicit EventMark(const c10::Stream& stream) : event_(stream.device_type()) { event_.record(stream); }

  bool has_passed() const override {
    return or_end("an event", [this] { return event_.query(); });
  }
  void wait() const override {
    or_end("an event", [this] { event_.synchronize(); });
  }
  void hold(const c10::Stream& stream) const { event_.block(stream); }

 private:
  c10::Event event_;
};

class EventSpan final : public DeviceSpan {
 public:
  explicit EventSpan(const c10::Stream& stream) : stream_(stream) { begin_.record(stream_); }

  void end() override {
    or_end("an event", [this] { end_.record(stream_); });
  }

  std::optional<Tick> length() const override {
    return or_end("an event", [this]() -> std::optional<Tick> {
      if (!end_.was_marked_for_recording() || !end_.query()) return std::nullopt;
      constexpr double kPerMillisecond = 1e6;
      return static_cast<Tick>(begin_.elapsedTime(end_) * kPerMillisecond);
    });
  }

 private:
  c10::Stream stream_;
  c10::Event begin_{stream_.device_type(), c10::EventFlag::BACKEND_DEFAULT};
  c10::Event end_{stream_.device_type(), c10::EventFlag::BACKEND_DEFAULT};
};

at::Tensor flat(const Buffer& buffer, at::ScalarType type) {
  return to_tensor(buffer, {static_cast<std::int64_t>(buffer.size / c10::elementSize(type))}, type);
}

at::Tensor bytes_of(const Buffer& buffer) { return flat(buffer, at::kByte); }

at::ScalarType type_of(Accumulation accumulation) {
  return accumulation == Accumulation::kFloat ? at::kFloat : at::kLong;
}

void copy_bytes(const Buffer& to, const Buffer& from) {
  EVERSTEP_CHECK(to.size == from.size, "a copy has the size of what it is made from");
  at::Tensor target = bytes_of(to);
  target.copy_(bytes_of(from), true);
}

c10::Stream pool_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

// Streams of those that have ended. LibTorch keeps freed memory and workspaces by stream: without this, each generation
// would leave its own behind for nobody.
struct IdleStreams {
  std::mutex mutex;
  std::vector<TorchDeviceMemory::Streams> streams;
};

// Never destroyed: a worker may end after main().
IdleStreams& idle_streams() {
  static auto* const made = new IdleStreams;
  return *made;
}

TorchDeviceMemory::Streams take_streams(c10::Device device) {
  IdleStreams& idle = idle_streams();
  const std::lock_guard lock(idle.mutex);
  const auto found = std::find_if(idle.streams.begin(), idle.streams.end(),
                                  [&](const auto& streams) { return streams.compute.device() == device; });
  if (found == idle.streams.end()) return {pool_stream(device), {pool_stream(device), pool_stream(device)}};
  const TorchDeviceMemory::Streams taken = *found;
  idle.streams.erase(found);
  return taken;
}

void give_back(const TorchDeviceMemory::Streams& streams) {
  IdleStreams& idle = idle_streams();
  const std::lock_guard lock(idle.mutex);
  idle.streams.push_back(streams);
}

c10::Stream exchange_current(const c10::Stream& stream) {
  return c10::impl::VirtualGuardImpl(stream.device_type()).exchangeStream(stream);
}

}  // namespace

TorchDeviceMemory::TorchDeviceMemory(c10::Device device, OnMark on_mark)
    : TorchDeviceMemory(take_streams(device), std::move(on_mark)) {}

TorchDeviceMemory::TorchDeviceMemory(const Streams& streams, OnMark on_mark)
    : on_mark_(std::move(on_mark)),
      compute_(streams.compute),
      before_(exchange_current(compute_)),
      lanes_(streams.lanes) {}

TorchDeviceMemory::~TorchDeviceMemory() {
  exchange_current(before_);
  give_back({compute_, lanes_});
}

// ---- memory ----

Buffer TorchDeviceMemory::allocate_scratch(std::size_t bytes) {
  return or_end("an allocation", [&] {
    return to_buffer(at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte).device(device())));
  });
}

Buffer TorchDeviceMemory::allocate_zeroed(std::size_t bytes) {
  Buffer buffer = allocate_scratch(bytes);
  zero(buffer);
  return buffer;
}

Buffer TorchDeviceMemory::allocate_pinned(std::size_t bytes) {
  return or_end("an allocation of pinned memory", [&] {
    Buffer buffer =
        to_buffer(at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte).pinned_memory(true)));
    buffer.place = Buffer::Place::kPinned;
    return buffer;
  });
}

// ---- in the order of the compute stream ----

void TorchDeviceMemory::zero(const Buffer& buffer) {
  if (buffer.empty()) return;
  compute_after_copies_of(buffer);
  or_end("zeroing", [&] { bytes_of(buffer).zero_(); });
}

void TorchDeviceMemory::copy(const Buffer& to, const Buffer& from) {
  if (to.empty() && from.empty()) return;
  EVERSTEP_CHECK(to.on_device() && from.place != Buffer::Place::kHost, "a copy to the device from where it reaches");
  compute_after_copies_of(to);
  or_end("a copy", [&] { copy_bytes(to, from); });
}

void TorchDeviceMemory::swap(const Buffer& a, const Buffer& b) {
  if (a.empty() && b.empty()) return;
  compute_after_copies_of(a);
  compute_after_copies_of(b);
  or_end("a swap", [&] { ops::swap(bytes_of(a), bytes_of(b)); });
}

void TorchDeviceMemory::add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) {
  if (target.empty() && addend.empty()) return;
  compute_after_copies_of(target);
  or_end("a sum", [&] { ops::add_sums(flat(target, type_of(accumulation)), flat(addend, type_of(accumulation))); });
}

void TorchDeviceMemory::adamw(Accumulation accumulation, const kernels::AdamWConstants& constants,
                              const AdamWBuffers& buffers) {
  if (buffers.master.empty() && buffers.gradient.empty()) return;
  for (const Buffer* written : {&buffers.master, &buffers.first, &buffers.second, &buffers.gradient}) {
    compute_after_copies_of(*written);
  }
  or_end("a step", [&] {
    ops::adamw(flat(buffers.master, at::kFloat), flat(buffers.first, at::kFloat), flat(buffers.second, at::kFloat),
               flat(buffers.gradient, type_of(accumulation)), constants);
  });
}

void TorchDeviceMemory::adamw_trial(Accumulation accumulation, Precision precision,
                                    const kernels::AdamWConstants& constants, const AdamWBuffers& buffers,
                                    const Buffer& weights) {
  if (buffers.master.empty() && buffers.gradient.empty()) return;
  compute_after_copies_of(weights);
  or_end("a provisional step", [&] {
    ops::adamw_trial(flat(weights, precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat),
                     flat(buffers.master, at::kFloat), flat(buffers.first, at::kFloat),
                     flat(buffers.second, at::kFloat), flat(buffers.gradient, type_of(accumulation)), constants);
  });
}

void TorchDeviceMemory::round_to_bf16(const Buffer& weights, const Buffer& master) {
  if (weights.empty() && master.empty()) return;
  compute_after_copies_of(weights);
  or_end("rounding", [&] { ops::round_to_bf16(flat(weights, at::kBFloat16), flat(master, at::kFloat)); });
}

Mark TorchDeviceMemory::mark() { return told(Work::kCompute, mark_of(compute_)); }

std::unique_ptr<DeviceSpan> TorchDeviceMemory::begin_span() {
  return or_end("an event", [&] { return std::make_unique<EventSpan>(compute_); });
}

// ---- beside the compute stream ----

void TorchDeviceMemory::begin_after_compute(const c10::Stream& copies) {
  or_end("an event", [&] { EventMark(compute_).hold(copies); });
}

void TorchDeviceMemory::keep_for(const Buffer& read, const c10::Stream& copies) {
  or_end("an event", [&] { owner_of(read).record_stream(copies); });
}

Mark TorchDeviceMemory::mark_of(const c10::Stream& stream) {
  return or_end("an event", [&] { return std::make_shared<const EventMark>(stream); });
}

Mark TorchDeviceMemory::told(Work work, Mark mark) const {
  if (on_mark_) on_mark_(work, mark);
  return mark;
}

void TorchDeviceMemory::compute_after_copies_of(const Buffer& written) {
  const std::byte* const begin = written.data;
  const std::byte* const end = begin + written.size;
  for (const Reader& reader : readers_) {
    const auto* const event = dynamic_cast<const EventMark*>(reader.mark.get());
    if (reader.begin < end && begin < reader.end && event != nullptr) {
      or_end("an event", [&] { event->hold(compute_); });
    }
  }
}

void TorchDeviceMemory::forget_ended_readers() {
  while (!readers_.empty() && has_passed(readers_.front().mark)) readers_.pop_front();
}

Mark TorchDeviceMemory::copy_out(const Buffer& to, const Buffer& from, Lane lane) {
  if (to.empty() && from.empty()) return nullptr;
  EVERSTEP_CHECK(from.on_device() && to.place == Buffer::Place::kPinned, "a copy out ends in pinned memory");
  const c10::Stream& copies = stream_of(lane);
  begin_after_compute(copies);
  or_end("a copy out", [&] {
    const c10::StreamGuard guard(copies);
    copy_bytes(to, from);
  });
  keep_for(from, copies);
  forget_ended_readers();
  Mark mark = told(lane == Lane::kWire ? Work::kWireCopies : Work::kBulkCopies, mark_of(copies));
  readers_.push_back({from.data, from.data + from.size, mark});
  return mark;
}

Buffer TorchDeviceMemory::fetch(const Buffer& from) {
  if (!from.on_device()) return from;
  Buffer on_host = allocate_pinned(from.size);
  wait_for(copy_out(on_host, from, Lane::kBulk));
  return on_host;
}

// ---- numbers for the host ----

TorchDeviceMemory::Page TorchDeviceMemory::take_page() {
  Page page;
  if (free_.empty()) {
    page.on_device = allocate_zeroed(kNotesOfPage * kNoteBytes);
    page.on_host = allocate_pinned(kNotesOfPage * kNoteBytes);
  } else {
    page = std::move(free_.back());
    free_.pop_back();
    zero(page.on_device);
  }
  page.notes = std::make_shared<NotePage>();
  page.used = 0;
  return page;
}

// `write` is given one number of that type in memory that is zero.
template <typename T, typename Write>
Noted<T> TorchDeviceMemory::note(at::ScalarType type, Write write) {
  if (!open_) open_ = take_page();
  const std::size_t place = open_->used++;
  Noted<T> noted(open_->notes, place);
  or_end("a note",
         [&] { write(to_tensor(open_->on_device.part(place * kNoteBytes, c10::elementSize(type)), {1}, type)); });
  if (open_->used == kNotesOfPage) gather();
  return noted;
}

Noted<double> TorchDeviceMemory::sum_of_squares(Accumulation accumulation, const Buffer& gradient) {
  if (gradient.empty()) return 0.0;
  return note<double>(
      at::kDouble, [&](const at::Tensor& into) { ops::sum_of_squares(into, flat(gradient, type_of(accumulation))); });
}

Noted<bool> TorchDeviceMemory::not_finite(Precision precision, const Buffer& values) {
  if (values.empty()) return false;
  const at::ScalarType type = precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  return note<bool>(at::kByte, [&](const at::Tensor& into) { ops::note_not_finite(into, flat(values, type)); });
}

Noted<std::uint64_t> TorchDeviceMemory::hash(const Buffer& bytes) {
  if (bytes.empty()) return tree_hash({});
  return note<std::uint64_t>(at::kLong, [&](const at::Tensor& into) { ops::hash(into, bytes_of(bytes)); });
}

Noted<double> TorchDeviceMemory::number(const Buffer& fp32) {
  return note<double>(at::kDouble, [&](const at::Tensor& into) { into.copy_(flat(fp32, at::kFloat)); });
}

Noted<bool> TorchDeviceMemory::flag(const Buffer& byte) {
  return note<bool>(at::kByte, [&](const at::Tensor& into) { into.copy_(bytes_of(byte)); });
}

void TorchDeviceMemory::gather() {
  if (!open_) return;
  Page page = *std::exchange(open_, std::nullopt);
  const std::size_t bytes = page.used * kNoteBytes;
  page.is_here = copy_out(page.on_host.part(0, bytes), page.on_device.part(0, bytes), Lane::kWire);
  coming_.push_back(std::move(page));
}

bool TorchDeviceMemory::gathered() {
  while (!coming_.empty() && has_passed(coming_.front().is_here)) {
    Page page = std::move(coming_.front());
    coming_.pop_front();
    const auto numbers = page.on_host.as<const std::uint64_t>();
    page.notes->bits.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(page.used));
    page.notes.reset();
    free_.push_back(std::move(page));
  }
  return coming_.empty();
}

void TorchDeviceMemory::wait_gathered() {
  gather();
  if (!coming_.empty()) wait_for(coming_.back().is_here);
  EVERSTEP_CHECK(gathered(), "notes come in the order in which they left");
}

}  // namespace everstep::trainer
