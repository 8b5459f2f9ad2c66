#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/tick.h"
#include "launcher/worker/device_work.h"
#include "trainer/model/stage_compute.h"

namespace everstep::launcher {

// What the training thread is computing, itself or on a device, for threads that must know whether it makes progress: a
// worker that hangs in an op is to lose its lease, one that waits for peers or loads a checkpoint is not.
class ComputeWatch {
 public:
  // `shortest_limit`: no op hangs that has not taken longer.
  ComputeWatch(std::function<Tick()> now, Tick shortest_limit)
      : now_(std::move(now)), shortest_limit_(shortest_limit), device_(now_) {}

  // Makes the stage tell this watch what it does, and mark where its ops end on its device, if it has one.
  std::unique_ptr<trainer::StageCompute> watch(std::unique_ptr<trainer::StageCompute> stage,
                                               trainer::DeviceMemory* device);

  // What the device has to do, all of it: for WorkerDevice::train().
  DeviceWork& device() { return device_; }

  // No op has taken longer than it may, and nothing else that the device has to do: many times as long as the longest
  // op that ended, and at least the shortest limit.
  bool makes_progress();

  // One more than the last minibatch whose forward was begun since reset().
  std::int64_t reached() const { return reached_; }
  void reset() { reached_ = 0; }

  Tick last_end() const { return last_end_; }  // of an op; 0: none has ended

  void begin(std::int64_t position);
  void begin() { begun_ = now_(); }
  void end();
  void took(Tick length) { longest_ = std::max(longest_.load(), length); }  // an op

 private:
  static constexpr Tick kPatience = 20;

  const std::function<Tick()> now_;
  const Tick shortest_limit_;
  std::atomic<Tick> begun_{0};  // 0: not computing
  std::atomic<Tick> longest_{0};
  std::atomic<Tick> last_end_{0};
  std::atomic<std::int64_t> reached_{0};
  DeviceWork device_;
};

}  // namespace everstep::launcher
