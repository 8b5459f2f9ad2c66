#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "trainer/model/device_memory.h"

namespace everstep::trainer {

// Memory and loops on any device of LibTorch that has streams, events and the operators of ops.h. Until it ends, the
// thread that made it computes on a stream of its own, and so do the stages that this thread runs. The next one of the
// device that is made after its end takes over its streams, and what LibTorch keeps for them.
class TorchDeviceMemory : public DeviceMemory {
 public:
  struct Streams {
    c10::Stream compute;
    std::array<c10::Stream, 2> lanes;
  };

  explicit TorchDeviceMemory(c10::Device device, OnMark on_mark = {});
  TorchDeviceMemory(const TorchDeviceMemory&) = delete;
  TorchDeviceMemory& operator=(const TorchDeviceMemory&) = delete;
  ~TorchDeviceMemory() override;

  c10::Device device() const { return compute_.device(); }

  Buffer allocate_zeroed(std::size_t bytes) override;
  Buffer allocate_scratch(std::size_t bytes) override;
  Buffer allocate_pinned(std::size_t bytes) override;
  void zero(const Buffer& buffer) override;
  void copy(const Buffer& to, const Buffer& from) override;
  void swap(const Buffer& a, const Buffer& b) override;
  void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) override;
  void adamw(Accumulation accumulation, const kernels::AdamWConstants& constants, const AdamWBuffers& buffers) override;
  void adamw_trial(Accumulation accumulation, Precision precision, const kernels::AdamWConstants& constants,
                   const AdamWBuffers& buffers, const Buffer& weights) override;
  void round_to_bf16(const Buffer& weights, const Buffer& master) override;
  Mark mark() override;
  void* compute_stream() const override { return compute_.native_handle(); }
  std::unique_ptr<DeviceSpan> begin_span() override;
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override;
  Buffer fetch(const Buffer& from) override;
  Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) override;
  Noted<bool> not_finite(Precision precision, const Buffer& values) override;
  Noted<std::uint64_t> hash(const Buffer& bytes) override;
  Noted<double> number(const Buffer& fp32) override;
  Noted<bool> flag(const Buffer& byte) override;
  void gather() override;
  bool gathered() override;
  void wait_gathered() override;

 protected:
  TorchDeviceMemory(const Streams& streams, OnMark on_mark);

  // What keeps streams in order, one by one: tests leave one out, to see that somebody notices.

  // A copy out begins when all computed so far is over.
  virtual void begin_after_compute(const c10::Stream& copies);
  // Memory that a copy reads is not used again before the copy is over, though its owner releases it.
  virtual void keep_for(const Buffer& read, const c10::Stream& copies);
  // What is computed from now on begins when the copies that read these bytes are over.
  virtual void compute_after_copies_of(const Buffer& written);
  // All that is on a stream so far.
  virtual Mark mark_of(const c10::Stream& stream);

 private:
  // Numbers on the device, and where they go on the host.
  struct Page {
    Buffer on_device;
    Buffer on_host;
    std::shared_ptr<NotePage> notes;
    std::size_t used = 0;
    Mark is_here;  // as soon as they are on their way
  };

  // A copy out that may still read.
  struct Reader {
    const std::byte* begin;
    const std::byte* end;
    Mark mark;
  };

  const c10::Stream& stream_of(Lane lane) const { return lanes_[static_cast<std::size_t>(lane)]; }
  void forget_ended_readers();
  Page take_page();
  template <typename T, typename Write>
  Noted<T> note(at::ScalarType type, Write write);

  Mark told(Work work, Mark mark) const;

  OnMark on_mark_;
  c10::Stream compute_;
  c10::Stream before_;  // of the thread
  std::array<c10::Stream, 2> lanes_;
  std::deque<Reader> readers_;
  std::optional<Page> open_;
  std::deque<Page> coming_;
  std::vector<Page> free_;
};

}  // namespace everstep::trainer
