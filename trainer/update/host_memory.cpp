#include "trainer/update/host_memory.h"

#include <cstring>

#include "base/check.h"
#include "trainer/update/anomaly.h"
#include "trainer/update/loops.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

template <typename Sum>
AdamWState<Sum> state_of(const DeviceMemory::AdamWBuffers& buffers) {
  const std::span<Sum> sums = buffers.gradient.as<Sum>();
  return {buffers.master.as<float>().data(), buffers.first.as<float>().data(), buffers.second.as<float>().data(),
          sums.data(), std::ssize(sums)};
}

template <typename Weight, typename Sum>
void try_step(const kernels::AdamWConstants& constants, const AdamWState<Sum>& state, const Buffer& weights) {
  auto* const target = reinterpret_cast<Weight*>(weights.data);
  trainer::adamw_trial(constants, AdamWTrialState<Sum, Weight>{state.master, state.first, state.second, state.sums,
                                                               target, state.count});
}

template <typename Sum>
void try_step(Precision precision, const kernels::AdamWConstants& constants, const AdamWState<Sum>& state,
              const Buffer& weights) {
  if (precision == Precision::kBf16) return try_step<kernels::Bf16>(constants, state, weights);
  try_step<float>(constants, state, weights);
}

class HostMemory final : public DeviceMemory {
 public:
  Buffer allocate_zeroed(std::size_t bytes) override { return trainer::allocate_zeroed(bytes); }
  Buffer allocate_scratch(std::size_t bytes) override { return trainer::allocate_scratch(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return trainer::allocate_scratch(bytes); }

  void zero(const Buffer& buffer) override {
    if (!buffer.empty()) std::memset(buffer.data, 0, buffer.size);
  }

  void copy(const Buffer& to, const Buffer& from) override {
    EVERSTEP_CHECK(to.size == from.size, "a copy has the size of what it is made from");
    if (!from.empty()) std::memcpy(to.data, from.data, from.size);
  }

  void swap(const Buffer& a, const Buffer& b) override { swap_bytes(a.as<std::byte>(), b.as<std::byte>()); }

  void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) override {
    trainer::add_sums(accumulation, target, addend);
  }

  void adamw(Accumulation accumulation, const kernels::AdamWConstants& constants,
             const AdamWBuffers& buffers) override {
    if (accumulation == Accumulation::kFloat) {
      trainer::adamw(constants, state_of<float>(buffers));
    } else {
      trainer::adamw(constants, state_of<std::int64_t>(buffers));
    }
  }

  void adamw_trial(Accumulation accumulation, Precision precision, const kernels::AdamWConstants& constants,
                   const AdamWBuffers& buffers, const Buffer& weights) override {
    if (accumulation == Accumulation::kFloat) {
      try_step(precision, constants, state_of<float>(buffers), weights);
    } else {
      try_step(precision, constants, state_of<std::int64_t>(buffers), weights);
    }
  }

  void round_to_bf16(const Buffer& weights, const Buffer& master) override {
    trainer::round_to_bf16(master.as<const float>(), weights.as<std::uint16_t>());
  }

  Mark mark() override { return nullptr; }
  std::unique_ptr<DeviceSpan> begin_span() override { return nullptr; }

  Mark copy_out(const Buffer& to, const Buffer& from, Lane /*lane*/) override {
    copy(to, from);
    return nullptr;
  }

  Buffer fetch(const Buffer& from) override { return from; }

  Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) override {
    return accumulation == Accumulation::kFloat ? trainer::sum_of_squares(gradient.as<const float>())
                                                : trainer::sum_of_squares(gradient.as<const std::int64_t>());
  }

  Noted<bool> not_finite(Precision precision, const Buffer& values) override { return !is_finite(values, precision); }
  Noted<std::uint64_t> hash(const Buffer& bytes) override { return tree_hash(bytes.as<const std::byte>()); }
  Noted<double> number(const Buffer& fp32) override { return double{fp32.as<const float>().front()}; }
  Noted<bool> flag(const Buffer& byte) override { return byte.as<const std::byte>().front() != std::byte{0}; }

  void gather() override {}
  bool gathered() override { return true; }
  void wait_gathered() override {}
};

}  // namespace

DeviceMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace everstep::trainer
