#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "trainer/model/device_memory.h"
#include "trainer/update/host_memory.h"

namespace everstep::trainer {

// The host as a device whose copies out come when a test lets them. What it calls memory of the device is the host's.
class HeldMemory final : public DeviceMemory {
 public:
  void hold() { set_held(true); }
  void let_go() { set_held(false); }

  Buffer allocate_zeroed(std::size_t bytes) override { return placed(host_memory().allocate_zeroed(bytes)); }
  Buffer allocate_scratch(std::size_t bytes) override { return placed(host_memory().allocate_scratch(bytes)); }
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
  void round_to_bf16(const Buffer& weights, const Buffer& master) override {
    host_memory().round_to_bf16(weights, master);
  }
  Mark mark() override { return nullptr; }
  std::unique_ptr<DeviceSpan> begin_span() override { return nullptr; }
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    host_memory().copy_out(to, from, lane);
    return std::make_shared<const HeldMark>(state_);
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

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false;
  };

  class HeldMark final : public DeviceMark {
   public:
    explicit HeldMark(std::shared_ptr<State> state) : state_(std::move(state)) {}
    bool has_passed() const override {
      const std::lock_guard lock(state_->mutex);
      return !state_->held;
    }
    void wait() const override {
      std::unique_lock lock(state_->mutex);
      state_->changed.wait(lock, [this] { return !state_->held; });
    }

   private:
    std::shared_ptr<State> state_;
  };

  static Buffer placed(Buffer buffer) {
    buffer.place = Buffer::Place::kDevice;
    return buffer;
  }

  void set_held(bool held) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->held = held;
    }
    state_->changed.notify_all();
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace everstep::trainer
