#pragma once

#include <memory>

#include "launcher/job/device_options.h"
#include "launcher/worker/device_work.h"
#include "storage/manifest.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// Where a worker process trains.
class WorkerDevice {
 public:
  // On the host.
  WorkerDevice() = default;

  // Checks that the device is there, and prepares the process for it. Without a number it is the first one of its kind.
  // Before LibTorch computes anything.
  static Result<WorkerDevice> open(const DeviceName& name);

  // "cuda:1"
  std::string text() const;

  // Memory of the device, for the thread that computes there; nothing: it is the host.
  std::unique_ptr<trainer::DeviceMemory> make_memory(trainer::DeviceMemory::OnMark on_mark = {}) const;

  // What bits depend on here, for checkpoints.
  storage::Settings provenance() const;

  // As trainer::train(), there: over a transport of the host, with hooks as for the host. What it returns lies on the
  // host. `work`, if there is one, knows meanwhile what the device has to do.
  Result<trainer::TrainResult> train(const trainer::TrainOptions& options, const trainer::DataSource& data,
                                     trainer::Transport& transport, trainer::TrainHooks hooks,
                                     DeviceWork* work = nullptr) const;

 private:
  explicit WorkerDevice(DeviceName name) : name_(std::move(name)) {}

  DeviceName name_{kHostDevice};
};

}  // namespace everstep::launcher
