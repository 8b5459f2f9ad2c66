#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/loop/all_workers.h"
#include "trainer/torch/torch_device_memory.h"

namespace everstep::accelerator {

// Before a run: race_report() tells of what comes from now on.
void forget_mistakes();

// Memory on the fake device for one worker's thread.
using MakeMemory = std::function<std::unique_ptr<trainer::TorchDeviceMemory>(int worker)>;

std::unique_ptr<trainer::TorchDeviceMemory> plain_memory(int worker);

// The same run on the fake device: every worker has streams of its own, and frames go through pinned memory.
trainer::RunChanges on_device(trainer::RunChanges changes = {}, const MakeMemory& make_memory = plain_memory);

enum class Where : std::uint8_t { kCpu, kDevice };

trainer::RunChanges there(Where where, const trainer::RunChanges& changes);

// How often the training thread waited for the device, by worker, from one update's report to the next: the first entry
// is from the first update to the second.
struct WaitsOfWindows {
  std::vector<std::vector<std::int64_t>> by_worker;
};

// Adds a count of waits to the hooks; `waits` must outlive the run.
trainer::RunChanges counting_waits(trainer::RunChanges changes, int workers, WaitsOfWindows& waits);

}  // namespace everstep::accelerator
