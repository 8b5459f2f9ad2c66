#include "tests/accelerator/device_runs.h"

#include <chrono>
#include <optional>
#include <utility>

#include "tests/accelerator/prepared_device.h"
#include "trainer/staging/staged_transport.h"

namespace everstep::accelerator {

using namespace everstep::trainer;

void forget_mistakes() {
  prepared_device();
  race_report();
}

std::unique_ptr<TorchDeviceMemory> plain_memory(int /*worker*/) {
  return std::make_unique<TorchDeviceMemory>(prepared_device());
}

RunChanges on_device(RunChanges changes, const MakeMemory& make_memory) {
  prepared_device();
  RunChanges changed = changes;
  changed.program = [program = changes.program, make_memory](const TrainOptions& options, const DataSource& data,
                                                             Transport& transport,
                                                             const TrainHooks& hooks) -> Result<TrainResult> {
    const auto memory = make_memory(transport.worker());
    const auto staged = make_staged_transport(transport, *memory);
    TrainHooks on_device = hooks;
    on_device.device = memory.get();
    auto result = program(options, data, *staged, on_device);
    if (result) EVERSTEP_TRY(staged->flush(std::chrono::seconds(20)));
    return result;
  };
  return changed;
}

RunChanges there(Where where, const RunChanges& changes) {
  return where == Where::kDevice ? on_device(changes) : changes;
}

RunChanges counting_waits(RunChanges changes, int workers, WaitsOfWindows& waits) {
  waits.by_worker.assign(static_cast<std::size_t>(workers), {});
  RunChanges changed = changes;
  changed.change_hooks = [before = changes.change_hooks, &waits](int worker, TrainHooks& hooks) {
    before(worker, hooks);
    hooks.on_step = [&mine = waits.by_worker[static_cast<std::size_t>(worker)],
                     last = std::make_shared<std::optional<std::int64_t>>(),
                     on_step = hooks.on_step](const StepReport& report) {
      on_step(report);
      const std::int64_t now = fake_accelerator().counters().waits_here;
      if (*last) mine.push_back(now - **last);
      *last = now;
    };
  };
  return changed;
}

}  // namespace everstep::accelerator
