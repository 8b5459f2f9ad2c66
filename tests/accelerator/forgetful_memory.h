#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"

// Memory of the fake device that forgets one order between streams, or between the device and the host. Each is right
// otherwise.
namespace everstep::accelerator {

using trainer::Accumulation;
using trainer::Buffer;
using trainer::DeviceMemory;
using trainer::Mark;
using trainer::Noted;
using trainer::TorchDeviceMemory;

// The real memory, whose every step a test may take wrongly.
class Forgetful : public TorchDeviceMemory {
 public:
  Forgetful() : TorchDeviceMemory(prepared_device()), side_(prepared_device_stream()) {}

 protected:
  // Runs on a stream that nothing orders.
  template <typename Function>
  void aside(Function function) {
    const c10::StreamGuard guard(side_);
    function();
  }

 private:
  static c10::Stream prepared_device_stream() {
    return c10::impl::VirtualGuardImpl(prepared_device().type()).getStreamFromGlobalPool(prepared_device());
  }

  c10::Stream side_;
};

class CopiesBeforeItIsComputed final : public Forgetful {
  void begin_after_compute(const c10::Stream&) override {}
};

class ReleasesWhatIsBeingCopied final : public Forgetful {
  void keep_for(const Buffer&, const c10::Stream&) override {}
};

class OverwritesWhatIsBeingCopied final : public Forgetful {
  void compute_after_copies_of(const Buffer&) override {}
};

// The host believes that a copy has come, unless it is one of the record or one that fetch() waits for.
template <DeviceMemory::Lane kLane>
class ReadsTooEarly final : public Forgetful {
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    Mark mark = Forgetful::copy_out(to, from, lane);
    const bool is_of_the_record = from.size < kSmallestTensor;
    return lane == kLane && !is_of_the_record && !fetches_ ? nullptr : mark;
  }

  Buffer fetch(const Buffer& from) override {
    fetches_ = true;
    Buffer fetched = Forgetful::fetch(from);
    fetches_ = false;
    return fetched;
  }

  bool fetches_ = false;

 public:
  static constexpr std::size_t kSmallestTensor = 4096;  // what travels between two stages of the tiny model
};

class FetchesTooEarly final : public Forgetful {
  Buffer fetch(const Buffer& from) override {
    if (!from.on_device()) return from;
    Buffer on_host = allocate_pinned(from.size);
    copy_out(on_host, from, Lane::kBulk);
    return on_host;
  }
};

class ReadsTheRecordTooEarly final : public Forgetful {
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    Mark mark = Forgetful::copy_out(to, from, lane);
    return from.size < ReadsTooEarly<Lane::kWire>::kSmallestTensor ? nullptr : mark;
  }
};

// One buffer for all receives and sends of a size, which the device may not have read yet.
class UsesStagingAgain final : public Forgetful {
  Buffer allocate_pinned(std::size_t bytes) override {
    std::vector<Buffer>& known = known_[bytes];
    if (known.size() < 2) known.push_back(Forgetful::allocate_pinned(bytes));
    return known[next_++ % known.size()];
  }

  std::map<std::size_t, std::vector<Buffer>> known_;
  std::size_t next_ = 0;
};

class ZeroesTooEarly final : public Forgetful {
  void zero(const Buffer& buffer) override {
    aside([&] { Forgetful::zero(buffer); });
  }
};

class SwapsTooEarly final : public Forgetful {
  void swap(const Buffer& a, const Buffer& b) override {
    aside([&] { Forgetful::swap(a, b); });
  }
};

class CopiesInTooEarly final : public Forgetful {
  void copy(const Buffer& to, const Buffer& from) override {
    aside([&] { Forgetful::copy(to, from); });
  }
};

class AddsTooEarly final : public Forgetful {
  void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) override {
    aside([&] { Forgetful::add_sums(accumulation, target, addend); });
  }
};

class StepsTooEarly final : public Forgetful {
  void adamw(Accumulation accumulation, const trainer::kernels::AdamWConstants& constants,
             const AdamWBuffers& buffers) override {
    aside([&] { Forgetful::adamw(accumulation, constants, buffers); });
  }
};

class TriesTooEarly final : public Forgetful {
  void adamw_trial(Accumulation accumulation, trainer::Precision precision,
                   const trainer::kernels::AdamWConstants& constants, const AdamWBuffers& buffers,
                   const Buffer& weights) override {
    aside([&] { Forgetful::adamw_trial(accumulation, precision, constants, buffers, weights); });
  }
};

class NotesTooEarly final : public Forgetful {
  Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) override {
    Noted<double> noted;
    aside([&] { noted = Forgetful::sum_of_squares(accumulation, gradient); });
    return noted;
  }
};

template <typename Memory>
MakeMemory all_have() {
  return [](int) { return std::make_unique<Memory>(); };
}

}  // namespace everstep::accelerator
