#pragma once

#include "launcher/job/device_options.h"
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

  // What bits depend on here, for checkpoints.
  storage::Settings provenance() const;

  // As trainer::train(), there: over a transport of the host, with hooks as for the host. What it returns lies on the
  // host.
  Result<trainer::TrainResult> train(const trainer::TrainOptions& options, const trainer::DataSource& data,
                                     trainer::Transport& transport, trainer::TrainHooks hooks) const;

 private:
  explicit WorkerDevice(DeviceName name) : name_(std::move(name)) {}

  DeviceName name_{kHostDevice};
};

}  // namespace everstep::launcher
