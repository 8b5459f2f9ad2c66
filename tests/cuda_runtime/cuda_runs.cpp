#include "tests/cuda_runtime/cuda_runs.h"

#include <chrono>
#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "trainer/staging/staged_transport.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/torch_device_memory.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::null_cuda {

using namespace everstep::trainer;

namespace {

Counts difference(const Counts& now, const Counts& before) {
  return {now.launches - before.launches, now.waits - before.waits, now.allocations - before.allocations,
          now.pinned_allocations - before.pinned_allocations};
}

void add(Counts& sum, const Counts& more) {
  sum.launches += more.launches;
  sum.waits += more.waits;
  sum.allocations += more.allocations;
  sum.pinned_allocations += more.pinned_allocations;
}

// Of one worker's training thread.
class Counting {
 public:
  explicit Counting(std::vector<WindowUse>& windows) : windows_(windows) {}

  void begin() { last_ = counts_of_this_thread(); }

  void count(const scheduler::Op& op) {
    const Counts now = counts_of_this_thread();
    const Counts since = difference(now, last_);
    last_ = now;
    if (op.kind != scheduler::OpKind::kUpdate) {
      if (since.waits > 0) open_.waited_in = last_wait();
      return add(open_.inside, since);
    }
    open_.at_update = since;
    windows_.push_back(open_);
    open_ = {};
  }

 private:
  std::vector<WindowUse>& windows_;
  WindowUse open_;
  Counts last_;
};

// What is wrong with windows from `first` on, with their places.
template <typename Wrong>
std::string tell(const UseOfGpus& use, std::size_t first, const Wrong& wrong) {
  std::string text;
  for (std::size_t worker = 0; worker < use.size(); ++worker) {
    for (std::size_t window = first; window < use[worker].size(); ++window) {
      const std::string what = wrong(use[worker][window]);
      if (what.empty()) continue;
      text += "worker " + std::to_string(worker) + ", window " + std::to_string(window) + ": " + what + "; ";
    }
  }
  return text;
}

}  // namespace

void prepare_gpus() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // as launcher/worker/worker_device.cpp does
  prepare_torch(1);
  prepare_devices();
  at::globalContext().lazyInitDevice(c10::kCUDA);
  at::cuda::clearCublasWorkspaces();
  c10::cuda::CUDACachingAllocator::emptyCache();
  for (int gpu = 0; gpu < kGpus; ++gpu) forget_most(gpu);
}

RunChanges on_gpus(const RunChanges& changes) {
  prepare_gpus();
  RunChanges changed = changes;
  changed.program = [program = changes.program](const TrainOptions& options, const DataSource& data,
                                                Transport& transport, const TrainHooks& hooks) -> Result<TrainResult> {
    const auto memory = make_device_memory("cuda", transport.worker());
    const auto staged = make_staged_transport(transport, *memory);
    TrainHooks on_gpu = hooks;
    on_gpu.device = memory.get();
    on_gpu.initialise_weights = {};
    on_gpu.initialise_master = {};
    on_gpu.on_end = {};
    auto result = program(options, data, *staged, on_gpu);
    if (result) EVERSTEP_TRY(staged->flush(std::chrono::seconds(60)));
    return result;
  };
  return changed;
}

RunChanges counting_use(const RunChanges& changes, int workers, UseOfGpus& use) {
  use.assign(static_cast<std::size_t>(workers), {});
  RunChanges changed = changes;
  changed.change_hooks = [before = changes.change_hooks, &use](int worker, TrainHooks& hooks) {
    before(worker, hooks);
    const auto counting = std::make_shared<Counting>(use[static_cast<std::size_t>(worker)]);
    hooks.on_begin = [counting] { counting->begin(); };
    hooks.on_op = [counting](const OpRecord& record) { counting->count(record.op); };
  };
  return changed;
}

std::string wrong_waits(const UseOfGpus& use) {
  return tell(use, 1, [](const WindowUse& window) -> std::string {
    if (window.inside.waits > 0) {
      return std::to_string(window.inside.waits) + " waits inside, the last in " + window.waited_in;
    }
    if (window.at_update.waits != 1) return std::to_string(window.at_update.waits) + " waits at the update";
    return "";
  });
}

std::string wrong_allocations(const UseOfGpus& use) {
  return tell(use, 2, [](const WindowUse& window) -> std::string {
    const std::int64_t allocations = window.inside.allocations + window.at_update.allocations;
    return allocations == 0 ? "" : std::to_string(allocations) + " cudaMalloc";
  });
}

}  // namespace everstep::null_cuda
