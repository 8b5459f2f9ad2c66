// What LibTorch's allocator takes of a GPU when a large model is trained, against what the planner reckons with.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include "scheduler/estimate.h"
#include "scheduler/model_shape.h"
#include "tests/cuda_runtime/cuda_runs.h"
#include "tests/trainer/torch/test_model.h"

namespace everstep::null_cuda {
namespace {

using namespace everstep::trainer;
using scheduler::ScheduleKind;

constexpr double kGib = 1 << 30;
constexpr double kTolerance = 0.10;

TrainOptions gpt2_xl(int depth) {
  TrainOptions options;
  options.model.shape = scheduler::find_model("gpt2-xl").value();
  options.model.precision = Precision::kBf16;
  options.schedule.kind = ScheduleKind::kAmdp;
  options.schedule.depth = depth;
  options.schedule.window = 2 * depth;
  options.steps = 3;
  options.peer_timeout = std::chrono::minutes(10);
  return options;
}

scheduler::PlanShape planned(const TrainOptions& options) {
  scheduler::Hardware hardware;
  hardware.memory_bytes = kGpuBytes;
  const int depth = options.schedule.depth;
  return scheduler::make_shape(profile_of(options.model, options.accumulation, 1e14), hardware, ScheduleKind::kAmdp,
                               scheduler::Placement::make(ScheduleKind::kAmdp, depth).value());
}

double allocated_at_most(int gpu) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(gpu));
  return static_cast<double>(stats.allocated_bytes[0].peak);
}

void expect_planned_memory(TrainOptions options) {
  const scheduler::PlanShape shape = planned(options);
  options.cuts = shape.cuts;
  const int depth = options.schedule.depth;
  const RandomSamples data(options.model);
  const RunChanges changes = on_gpus();
  for (int gpu = 0; gpu < depth; ++gpu) {
    c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(gpu));
  }
  const auto runs = run_in_threads(options, data, changes);
  ASSERT_TRUE(runs.ok()) << runs.error().line();
  for (int gpu = 0; gpu < depth; ++gpu) {
    const auto predicted = static_cast<double>(shape.peak_bytes[static_cast<std::size_t>(gpu)]);
    const auto taken = static_cast<double>(bytes_of(gpu).most);
    std::printf("gpt2-xl, bf16, amdp D=%d, worker %d: planned %.2f GiB, taken %.2f (%+.1f %%), in use %.2f\n", depth,
                gpu, predicted / kGib, taken / kGib, 100 * (taken / predicted - 1), allocated_at_most(gpu) / kGib);
    EXPECT_NEAR(taken / predicted, 1, kTolerance) << "worker " << gpu;
  }
}

TEST(PlannedMemory, IsWhatLibTorchTakesForGpt2XlOnFourGpus) { expect_planned_memory(gpt2_xl(4)); }

TEST(PlannedMemory, IsWhatLibTorchTakesForGpt2XlOnEightGpus) { expect_planned_memory(gpt2_xl(8)); }

// What LibTorch keeps of the first run serves the second one, which has threads and streams of its own.
TEST(MemoryOfTheNextGeneration, IsThatOfTheOneBefore) {
  TrainOptions options = gpt2_xl(4);
  options.model.shape = {"wide", scheduler::ModelFamily::kGpt, 6, 512, 8, 256, 4096};
  options.cuts = planned(options).cuts;
  const RandomSamples data(options.model);
  const RunChanges changes = on_gpus();
  ASSERT_TRUE(run_in_threads(options, data, changes).ok());
  std::vector<std::int64_t> first;
  for (int gpu = 0; gpu < 4; ++gpu) first.push_back(bytes_of(gpu).most);
  ASSERT_TRUE(run_in_threads(options, data, changes).ok());
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::int64_t before = first[static_cast<std::size_t>(gpu)];
    EXPECT_LE(static_cast<double>(bytes_of(gpu).most), 1.1 * static_cast<double>(before)) << "worker " << gpu;
  }
}

}  // namespace
}  // namespace everstep::null_cuda
