#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launcher/job/device_environment.h"
#include "launcher/job/device_options.h"
#include "launcher/worker/device_claim.h"
#include "launcher/worker/device_work.h"
#include "storage/manifest.h"
#include "trainer/loop/train_loop.h"
#include "trainer/nccl/nccl_mesh.h"

namespace everstep::launcher {

// Where a worker process trains.
class WorkerDevice {
 public:
  // On the host.
  WorkerDevice() = default;

  // From now on sums and weights travel over an emulated link between all that train() here.
  void emulate_link(std::int64_t bytes_per_second) { link_bytes_per_second_ = bytes_per_second; }

  // Checks that the device is there, and prepares the process for it. Without a number it is the first one of its kind;
  // with `claims`, the directory of DeviceClaim, the first one that no other worker has, and no other takes it as long
  // as there is a copy of this. Before LibTorch computes anything.
  static Result<WorkerDevice> open(const DeviceName& name, const DeviceVariables& variables = {},
                                   const std::filesystem::path& claims = {});

  // Looks for NCCL, as --transport of the job and of this worker say. The error: it has to be here, and is not. Without
  // it all that this process does goes over the host's wire. Before anything is connected.
  Status open_transport(const std::string& of_job, const std::string& of_worker);

  // Links with the peers of a generation, over their new connection: see connect_nccl(). Nothing: nobody has any.
  struct Place {
    std::uint64_t lineage = 0;
    Generation generation{};
    int worker = 0;
    int depth = 1;
    int width = 1;
    std::set<int> unreachable{};                           // by NCCL, as it turned out before
    std::function<void(int)> on_unreachable = [](int) {};  // as it turns out now
  };
  using Links = std::unique_ptr<trainer::NcclMesh>;
  Result<Links> connect(
      trainer::Transport& host, const Place& place, std::function<bool()> is_wanted = [] { return true; }) const;

  // Of a device other than the host with its number.
  const DeviceName& name() const { return name_; }

  // "cuda:1"
  std::string text() const;

  // "nccl 23007", "host"
  std::string transport_text() const;

  // Memory of the device, for the thread that computes there; nothing: it is the host.
  std::unique_ptr<trainer::DeviceMemory> make_memory(trainer::DeviceMemory::OnMark on_mark = {}) const;

  // How much of the device's memory is taken, by whomever; of the host nothing, which is asked otherwise.
  std::optional<std::int64_t> bytes_in_use() const;

  // What bits depend on here, for checkpoints.
  storage::Settings provenance() const;

  // As trainer::train(), there: over a transport of the host and the links beside it, if any, with hooks as for the
  // host. What it returns lies on the host. `work`, if there is one, knows meanwhile what the device has to do.
  Result<trainer::TrainResult> train(const trainer::TrainOptions& options, const trainer::DataSource& data,
                                     trainer::Transport& transport, trainer::NcclMesh* links, trainer::TrainHooks hooks,
                                     DeviceWork* work = nullptr) const;

 private:
  explicit WorkerDevice(DeviceName name) : name_(std::move(name)) {}

  // Over a transport that is made of the one of the host, and ends with the run.
  static Result<trainer::TrainResult> train_over(trainer::Transport& made, const trainer::TrainOptions& options,
                                                 const trainer::DataSource& data, const trainer::TrainHooks& hooks);

  DeviceName name_{kHostDevice};
  std::shared_ptr<const DeviceClaim> claim_;  // nothing: it does without
  std::optional<std::int64_t> link_bytes_per_second_;
  bool looks_for_links_ = false;
  std::shared_ptr<trainer::NcclDevice> nccl_;  // nothing: there is none
  std::string no_nccl_;                        // why
};

// The most memory that is taken for training, where it happens: of the host by this process, of a device by whomever.
class MemoryMeter {
 public:
  // Before training.
  explicit MemoryMeter(const WorkerDevice& device);

  // Since then, above what was taken before. LibTorch keeps what it has taken of a device.
  std::int64_t most() const;

 private:
  const WorkerDevice& device_;
  std::optional<std::int64_t> device_before_;
  std::int64_t host_before_;
};

}  // namespace everstep::launcher
