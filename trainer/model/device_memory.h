#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/tick.h"
#include "trainer/kernels/adamw.h"
#include "trainer/model/buffer.h"
#include "trainer/model/model_config.h"
#include "trainer/model/noted.h"

namespace everstep::trainer {

// A place in a device's work. Any thread may ask.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  virtual bool has_passed() const = 0;
  virtual void wait() const = 0;  // until it has
};

// Nothing: it has passed.
using Mark = std::shared_ptr<const DeviceMark>;

inline bool has_passed(const Mark& mark) { return mark == nullptr || mark->has_passed(); }
inline void wait_for(const Mark& mark) {
  if (mark != nullptr) mark->wait();
}

// How long a device works on what it is given between two places of its compute stream. Of the training thread.
class DeviceSpan {
 public:
  virtual ~DeviceSpan() = default;
  virtual void end() = 0;
  virtual std::optional<Tick> length() const = 0;  // nothing: it is not over yet
};

// Where weights, gradients, activations and optimizer state of one worker lie, and what is done with them besides
// forwards and backwards: on the host at once (host_memory()), on a device in the order of its compute stream, behind
// the caller's back. The core touches no byte of a device itself. Used by the training thread alone, which is also the
// one that runs the stages.
//
// Empty buffers may be given wherever buffers are, and lie nowhere: nothing is done with them.
//
// Nothing here waits but wait_gathered() and fetch(). A device that fails ends the process: other workers go on without
// this one, as after any death.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // What a mark may be of.
  enum class Work : std::uint8_t { kCompute, kWireCopies, kBulkCopies };
  // Is told of every mark that is made, by the training thread.
  using OnMark = std::function<void(Work, const Mark&)>;

  // Memory of the device; on the host ordinary memory.
  virtual Buffer allocate_zeroed(std::size_t bytes) = 0;
  virtual Buffer allocate_scratch(std::size_t bytes) = 0;

  // Memory of the host that copies from and to the device can work on behind the host's back.
  virtual Buffer allocate_pinned(std::size_t bytes) = 0;

  // ---- in the order of the compute stream ----

  virtual void zero(const Buffer& buffer) = 0;

  // Of equal size. Between two buffers of the device, or from pinned memory to the device: then the bytes of `from`
  // must stay until mark() has passed. On the host between any two.
  virtual void copy(const Buffer& to, const Buffer& from) = 0;
  virtual void swap(const Buffer& a, const Buffer& b) = 0;

  virtual void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) = 0;

  // All but the gradient are fp32; `gradient` has sums, and is left zero.
  struct AdamWBuffers {
    Buffer master;
    Buffer first;
    Buffer second;
    Buffer gradient;
  };
  virtual void adamw(Accumulation accumulation, const kernels::AdamWConstants& constants,
                     const AdamWBuffers& buffers) = 0;

  // What adamw() would make of the weights, in the model's precision; a weight for which that is no number stays as the
  // master has it. Changes `weights` alone.
  virtual void adamw_trial(Accumulation accumulation, Precision precision, const kernels::AdamWConstants& constants,
                           const AdamWBuffers& buffers, const Buffer& weights) = 0;
  virtual void round_to_bf16(const Buffer& weights, const Buffer& master) = 0;

  // All that is on the compute stream so far.
  virtual Mark mark() = 0;

  // The compute stream, as libraries beside LibTorch name it; the host has none.
  virtual void* compute_stream() const { return nullptr; }

  // From here on. Nothing: the caller's clock knows as much, because all is done at once.
  virtual std::unique_ptr<DeviceSpan> begin_span() = 0;

  // ---- beside the compute stream ----

  // Copies of one lane pass in the order in which they were started; those of different lanes do not wait for each
  // other.
  enum class Lane : std::uint8_t {
    kWire,  // what somebody waits for
    kBulk,  // checkpoints and copies of the owner state
  };

  // Copies to pinned memory what all work so far has made of `from`, while later work goes on; the bytes are there when
  // the mark has passed. `from` may be released at once. What this class writes to `from` later waits for the copy, on
  // the device; a stage's own writes do not.
  virtual Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) = 0;

  // The same bytes where the host can read them, waiting: what is not on a device is returned as it is.
  virtual Buffer fetch(const Buffer& from) = 0;

  // ---- numbers for the host ----

  // In double precision and in the order of kernels/ordered_sum.h. Not finite if the gradient is not.
  virtual Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) = 0;
  virtual Noted<bool> not_finite(Precision precision, const Buffer& values) = 0;  // any Inf or NaN among them
  virtual Noted<std::uint64_t> hash(const Buffer& bytes) = 0;                     // kernels/hash.h
  virtual Noted<double> number(const Buffer& fp32) = 0;                           // one number
  virtual Noted<bool> flag(const Buffer& byte) = 0;                               // one byte, which is zero or not

  // Starts to bring all that was noted so far to the host.
  virtual void gather() = 0;
  // Whether it has come; if so it is known.
  virtual bool gathered() = 0;
  // Gathers, and waits until all is known.
  virtual void wait_gathered() = 0;
};

// Makes `target` a copy of `source` on the device, or on the host; it is allocated only if it has another size.
inline void copy_into(DeviceMemory& memory, Buffer& target, const Buffer& source) {
  if (target.size != source.size) target = source.empty() ? Buffer{} : memory.allocate_scratch(source.size);
  if (!source.empty()) memory.copy(target, source);
}

// The same in pinned memory, beside the compute stream, in the lane for bulk.
inline Mark copy_out_into(DeviceMemory& memory, Buffer& target, const Buffer& source) {
  if (target.size != source.size) target = source.empty() ? Buffer{} : memory.allocate_pinned(source.size);
  return source.empty() ? nullptr : memory.copy_out(target, source, DeviceMemory::Lane::kBulk);
}

}  // namespace everstep::trainer
