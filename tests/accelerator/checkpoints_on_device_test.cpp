// Checkpoints of runs on the device, and runs that go on from them, there or on the CPU: one chain of bits.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/checkpoints/memory_checkpoints.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// Takes cuts as the real writer does: waits for the device on a thread of its own.
class WritesBehind final : public CheckpointSink {
 public:
  explicit WritesBehind(CheckpointSink& sink) : sink_(sink) {}
  WritesBehind(const WritesBehind&) = delete;
  WritesBehind& operator=(const WritesBehind&) = delete;
  ~WritesBehind() override { idle(); }

  bool idle() override {
    if (writer_.joinable()) writer_.join();
    return true;
  }
  void save(StagedCut cut) override {
    for (const StagedStage& stage : cut.stages) EXPECT_FALSE(stage.state.weights.on_device());
    writer_ = std::thread([this, cut = std::move(cut)]() mutable { sink_.save(std::move(cut)); });
  }
  void skipped(Position position) override { sink_.skipped(position); }
  Status finish() override {
    idle();
    return sink_.finish();
  }

 private:
  CheckpointSink& sink_;
  std::thread writer_;
};

std::vector<MemoryCheckpoint> checkpoints_of(TrainOptions options, const DataSource& data, Where where,
                                             const MemoryCheckpoint* from = nullptr, bool continues_live = false) {
  options.checkpoints.at_end = true;
  if (from != nullptr) options = resumed(options, *from, continues_live);
  const int workers = options.schedule.depth * options.schedule.width;
  MemoryCheckpoints store(options);
  std::vector<std::unique_ptr<WritesBehind>> writers(static_cast<std::size_t>(workers));
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    store.save_here(worker, hooks);
    auto& writer = writers[static_cast<std::size_t>(worker)];
    writer = std::make_unique<WritesBehind>(*hooks.checkpoints);
    hooks.checkpoints = writer.get();
    if (from != nullptr) restore_from(*from, options, hooks);
  };
  WaitsOfWindows waits;
  if (where == Where::kDevice) changes = counting_waits(on_device(changes), workers, waits);
  const auto runs = run_in_threads(options, data, changes);
  EXPECT_TRUE(runs.ok()) << (runs.ok() ? "" : runs.error().line());
  writers.clear();
  for (const auto& of_worker : waits.by_worker) {
    for (const std::int64_t each : of_worker) EXPECT_EQ(each, 1) << "waits in a window";
  }
  return store.complete();
}

std::string difference_between(const std::vector<MemoryCheckpoint>& expected,
                               const std::vector<MemoryCheckpoint>& others) {
  if (expected.size() != others.size()) {
    return std::to_string(others.size()) + " checkpoints instead of " + std::to_string(expected.size());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].kind != others[i].kind || expected[i].position != others[i].position ||
        expected[i].losses != others[i].losses) {
      return "checkpoint " + std::to_string(i) + " is another one";
    }
    if (std::string each = trainer::difference_between(expected[i], others[i]); !each.empty()) return each;
  }
  return "";
}

struct Saving {
  TestPlan plan;
  CheckpointPolicy policy;
  Precision precision = Precision::kFp32;
};

class CheckpointsOnDevice : public testing::TestWithParam<Saving> {};

TEST_P(CheckpointsOnDevice, AreTheCpusAndServeBoth) {
  const Saving saving = GetParam();
  TrainOptions options = under_plan(tiny_training(ModelFamily::kGpt, std::max(2, saving.plan.depth - 1)), saving.plan);
  options.steps = 3;
  options.model.precision = saving.precision;
  options.checkpoints = saving.policy;
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  const auto expected = checkpoints_of(options, *data, Where::kCpu);
  ASSERT_GE(expected.size(), 2U);
  EXPECT_EQ(difference_between(expected, checkpoints_of(options, *data, Where::kDevice)), "");
  const MemoryCheckpoint& origin = expected[expected.size() / 2 - 1];
  const bool live = origin.kind == CutKind::kLive;
  const auto on_device = checkpoints_of(options, *data, Where::kDevice, &origin, live);
  EXPECT_EQ(trainer::difference_between(expected.back(), on_device.back()), "") << "CPU, then device";
  // Of the rest of that run on the device, what comes next, for the CPU.
  const MemoryCheckpoint& next = on_device.front();
  const auto at_home = checkpoints_of(options, *data, Where::kCpu, &next, next.kind == CutKind::kLive);
  const auto& last = at_home.empty() ? next : at_home.back();
  EXPECT_EQ(trainer::difference_between(expected.back(), last), "") << "CPU, then device, then CPU";
  EXPECT_EQ(race_report(), "");
}

INSTANTIATE_TEST_SUITE_P(Device, CheckpointsOnDevice,
                         testing::Values(Saving{{ScheduleKind::kAmdp, 2, 1, 8}, {.every_updates = 1}, Precision::kBf16},
                                         Saving{{ScheduleKind::kOneFOneB, 2, 2, 8}, {.every_updates = 1}},
                                         Saving{{ScheduleKind::kAmdp, 2, 2, 8}, {.every_rounds = 1}},
                                         Saving{{ScheduleKind::kOneFOneB, 3, 1, 9}, {.every_rounds = 2}},
                                         Saving{trainer::clockwork(4, 2, 1, 10), {.every_rounds = 3}},
                                         Saving{trainer::provisional(trainer::clockwork(2, 1, 1, 8), 2),
                                                {.every_updates = 1},
                                                Precision::kBf16}));

}  // namespace
}  // namespace everstep::accelerator
