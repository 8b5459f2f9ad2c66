#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/trainer/staging/passed_on_memory.h"

namespace everstep::trainer {

// The host as a device whose copies out come when a test lets them. What it calls memory of the device is the host's.
class HeldMemory final : public PassedOnMemory {
 public:
  void hold() { set_held(true); }
  void let_go() { set_held(false); }

  Buffer allocate_zeroed(std::size_t bytes) override { return placed(host_memory().allocate_zeroed(bytes)); }
  Buffer allocate_scratch(std::size_t bytes) override { return placed(host_memory().allocate_scratch(bytes)); }
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    PassedOnMemory::copy_out(to, from, lane);
    return std::make_shared<const HeldMark>(state_);
  }

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
