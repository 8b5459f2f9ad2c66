#include "launcher/worker/worker_device.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/log_line.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/host.h"
#include "launcher/worker/worker_process.h"
#include "trainer/nccl/nccl_transport.h"
#include "trainer/staging/emulated_link.h"
#include "trainer/staging/staged_transport.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

// For the last frames of a run that has ended well.
constexpr std::chrono::seconds kFlushPatience{20};

Result<std::shared_ptr<trainer::NcclDevice>> open_nccl(const DeviceName& name) {
  auto api = trainer::find_nccl(name.kind);
  if (!api) return api.error();
  trainer::NcclDeviceOptions options;
  options.device = *name.number;
  options.on_hang = [](const Error& error) {
    log_event(LogLine("nccl_hangs").add("error", error.line()).text());
    std::_Exit(static_cast<int>(ExitCode::kRestart));
  };
  return trainer::NcclDevice::open(std::move(api).value(), std::move(options));
}

}  // namespace

Result<WorkerDevice> WorkerDevice::open(const DeviceName& name, const DeviceVariables& variables,
                                        const std::filesystem::path& claims) {
  if (name.is_host()) return WorkerDevice();
  constexpr int kKeep = 0;
  for (const auto& [variable, value] : variables) ::setenv(variable.c_str(), value.c_str(), kKeep);
  const auto devices = trainer::list_devices(name.kind);
  if (!devices) return devices.error();
  WorkerDevice device({name.kind, name.number.value_or(0)});
  if (*device.name_.number >= std::ssize(*devices)) {
    return not_found(
        "there is no device " + device.text() + ": this host has " + std::to_string(devices->size()) + " of them",
        "they are counted from 0");
  }
  if (!claims.empty()) {
    auto claim = DeviceClaim::take(name, *devices, claims);
    if (!claim) return claim.error();
    device.name_.number = claim->number();
    device.claim_ = std::make_shared<const DeviceClaim>(std::move(claim).value());
    if (device.claim_->is_shared()) log_event(LogLine("device_shared").add("device", device.text()).text());
  }
  trainer::prepare_devices();
  return device;
}

Status WorkerDevice::open_transport(const std::string& of_job, const std::string& of_worker) {
  looks_for_links_ = !name_.is_host() && of_job != kHostTransport;
  if (!looks_for_links_) return {};
  if (of_worker == kHostTransport) {
    no_nccl_ = "it was started with --transport=host";
    return {};
  }
  auto opened = open_nccl(name_);
  if (opened) {
    nccl_ = std::move(opened).value();
  } else if (of_job == kNcclTransport) {
    return opened.error();
  } else {
    no_nccl_ = opened.error().message;
    log_event(LogLine("transport_chosen").add("transport", kHostTransport).add("reason", no_nccl_).text());
  }
  return {};
}

Result<WorkerDevice::Links> WorkerDevice::connect(trainer::Transport& host, const Place& place,
                                                  std::function<bool()> is_wanted) const {
  if (!looks_for_links_ || place.worker >= place.depth * place.width) return Links();
  trainer::NcclMeshRequest request;
  request.lineage = place.lineage;
  request.generation = place.generation;
  request.workers = place.depth * place.width;
  request.why_none = no_nccl_;
  request.peers = trainer::nccl_peers(place.worker, place.depth, place.width);
  request.unreachable = place.unreachable;
  request.on_unreachable = place.on_unreachable;
  request.is_wanted = std::move(is_wanted);
  const auto tell = [&](const char* event, const char* who, int worker, const std::string& why) {
    log_event(LogLine(event)
                  .add("generation", place.generation.value)
                  .add(who, worker)
                  .add("transport", kHostTransport)
                  .add("reason", why)
                  .text());
  };
  request.on_without = [&](int worker, const std::string& why) { tell("without_nccl", "worker", worker, why); };
  request.on_missing = [&](int peer, const std::string& why) { tell("no_nccl", "peer", peer, why); };
  auto links = connect_nccl(nccl_, host, request);
  if (!links) return links.error();
  log_event(LogLine("linked")
                .add("generation", place.generation.value)
                .add("peers_over_nccl", (*links)->peers().size())
                .add("peers_over_host", request.peers.size() - (*links)->peers().size())
                .text());
  return links;
}

std::string WorkerDevice::transport_text() const {
  return nccl_ == nullptr ? kHostTransport : "nccl " + std::to_string(nccl_->api().get_version());
}

std::string WorkerDevice::text() const {
  return name_.is_host() ? name_.kind : name_.kind + ":" + std::to_string(*name_.number);
}

storage::Settings WorkerDevice::provenance() const {
  storage::Settings facts{{"kernels", trainer::cpu_capability()}, {"libtorch", trainer::torch_version()}};
  if (name_.is_host()) return facts;
  for (auto& fact : trainer::device_provenance(name_.kind, *name_.number)) facts.push_back(std::move(fact));
  if (const char* workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG"); workspace != nullptr && name_.kind == "cuda") {
    facts.emplace_back("cublas-workspace", workspace);
  }
  if (nccl_ != nullptr) facts.emplace_back("nccl", std::to_string(nccl_->api().get_version()));
  std::sort(facts.begin(), facts.end());
  return facts;
}

std::optional<std::int64_t> WorkerDevice::bytes_in_use() const {
  return name_.is_host() ? std::nullopt : trainer::device_bytes_in_use(name_.kind, *name_.number);
}

std::unique_ptr<trainer::DeviceMemory> WorkerDevice::make_memory(trainer::DeviceMemory::OnMark on_mark) const {
  return name_.is_host() ? nullptr : trainer::make_device_memory(name_.kind, *name_.number, std::move(on_mark));
}

Result<trainer::TrainResult> WorkerDevice::train(const trainer::TrainOptions& options, const trainer::DataSource& data,
                                                 trainer::Transport& transport, trainer::NcclMesh* links,
                                                 trainer::TrainHooks hooks, DeviceWork* work) const {
  if (name_.is_host()) {
    if (!link_bytes_per_second_) return trainer::train(options, data, transport, hooks);
    return train_over(*trainer::make_emulated_link(transport, *link_bytes_per_second_), options, data, hooks);
  }
  // Forgotten last: what is made below waits for the device when it ends.
  const auto forget = [](DeviceWork* done) { done->forget(); };
  const std::unique_ptr<DeviceWork, decltype(forget)> forgotten(work, forget);
  const auto memory = make_memory([work](trainer::DeviceMemory::Work kind, const trainer::Mark& mark) {
    if (work != nullptr) work->given(kind, mark);
  });
  const auto staged = make_staged_transport(transport, *memory);
  std::unique_ptr<trainer::Transport> linked;
  if (links != nullptr) {
    linked = make_nccl_transport(*links, transport, *staged,
                                 {memory->compute_stream(), options.lineage, options.generation});
  }
  hooks.device = memory.get();
  return train_over(linked ? *linked : *staged, options, data, hooks);
}

Result<trainer::TrainResult> WorkerDevice::train_over(trainer::Transport& made, const trainer::TrainOptions& options,
                                                      const trainer::DataSource& data,
                                                      const trainer::TrainHooks& hooks) {
  auto result = trainer::train(options, data, made, hooks);
  // A group that stopped by itself has left the transport unusable. Otherwise peers may still need the last frames; one
  // that cannot have them any more is no failure of a run that has all it wanted.
  if (result && result->end != trainer::RunEnd::kGroupStop) static_cast<void>(made.flush(kFlushPatience));
  return result;
}

MemoryMeter::MemoryMeter(const WorkerDevice& device)
    : device_(device), device_before_(device.bytes_in_use()), host_before_(resident_bytes()) {
  reset_peak_resident_bytes();
}

std::int64_t MemoryMeter::most() const {
  if (const auto now = device_.bytes_in_use(); now && device_before_) return *now - *device_before_;
  return peak_resident_bytes() - host_before_;
}

}  // namespace everstep::launcher
