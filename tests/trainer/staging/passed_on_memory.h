#pragma once

#include <memory>

#include "trainer/model/device_memory.h"
#include "trainer/update/host_memory.h"

namespace everstep::trainer {

// The host's memory, of which a test does something in another way.
class PassedOnMemory : public DeviceMemory {
 public:
  Buffer allocate_zeroed(std::size_t bytes) override { return host_memory().allocate_zeroed(bytes); }
  Buffer allocate_scratch(std::size_t bytes) override { return host_memory().allocate_scratch(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return host_memory().allocate_pinned(bytes); }
  void zero(const Buffer& buffer) override { host_memory().zero(buffer); }
  void copy(const Buffer& to, const Buffer& from) override { host_memory().copy(to, from); }
  void swap(const Buffer& a, const Buffer& b) override { host_memory().swap(a, b); }
  void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) override {
    host_memory().add_sums(accumulation, target, addend);
  }
  void adamw(Accumulation accumulation, const kernels::AdamWConstants& constants,
             const AdamWBuffers& buffers) override {
    host_memory().adamw(accumulation, constants, buffers);
  }
  void adamw_trial(Accumulation accumulation, Precision precision, const kernels::AdamWConstants& constants,
                   const AdamWBuffers& buffers, const Buffer& weights) override {
    host_memory().adamw_trial(accumulation, precision, constants, buffers, weights);
  }
  void round_to_bf16(const Buffer& weights, const Buffer& master) override {
    host_memory().round_to_bf16(weights, master);
  }
  Mark mark() override { return nullptr; }
  std::unique_ptr<DeviceSpan> begin_span() override { return nullptr; }
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    return host_memory().copy_out(to, from, lane);
  }
  Buffer fetch(const Buffer& from) override { return from; }
  Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) override {
    return host_memory().sum_of_squares(accumulation, gradient);
  }
  Noted<bool> not_finite(Precision precision, const Buffer& values) override {
    return host_memory().not_finite(precision, values);
  }
  Noted<std::uint64_t> hash(const Buffer& bytes) override { return host_memory().hash(bytes); }
  Noted<double> number(const Buffer& fp32) override { return host_memory().number(fp32); }
  Noted<bool> flag(const Buffer& byte) override { return host_memory().flag(byte); }
  void gather() override {}
  bool gathered() override { return true; }
  void wait_gathered() override {}
};

}  // namespace everstep::trainer
