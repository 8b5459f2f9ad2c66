// Negative controls: one order between streams, or between the device and the host, is forgotten in a run that is right
// otherwise. The checker notices, whatever the timing.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/forgetful_memory.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/socket/loopback_workers.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// What a run has besides frames, reduces and stashed weights.
struct RunKind {
  bool guards = true;
  bool saves = true;
  bool over_sockets = false;
  bool alone = false;        // one worker: no frames either
  bool provisional = false;  // weights of a trial step instead of stashed ones
};

// A sink that is content with any bytes, as long as they have come.
class LooksAtBytes final : public CheckpointSink {
 public:
  bool idle() override { return true; }
  void save(StagedCut cut) override {
    wait_for(cut.is_here);
    for (const StagedStage& stage : cut.stages) sum_ += std::to_integer<int>(*stage.state.weights.data);
  }
  void skipped(Position) override {}
  Status finish() override { return {}; }

 private:
  int sum_ = 0;
};

// Tells what the checker found, or else why the run failed.
std::string mistakes_of(const MakeMemory& make_memory, const RunKind& kind = {}) {
  const TestPlan plan =
      kind.alone ? TestPlan{ScheduleKind::kOneFOneB, 1, 1, 8} : TestPlan{ScheduleKind::kAmdp, 4, 1, 8};
  TrainOptions options = under_plan(tiny_training(ModelFamily::kGpt, 3), plan);
  options.steps = 3;
  options.stash = !kind.provisional;
  options.schedule.provisional = kind.provisional ? 1 : 0;
  options.checkpoints.every_updates = kind.saves ? 1 : 0;
  const auto placement = scheduler::Placement::make(plan.kind, plan.depth).value();
  for (int stage = 0; kind.guards && stage < placement.stages(); ++stage) {
    options.guards.push_back({(placement.owner_of(stage) + 1) % plan.depth});
  }
  std::vector<StateCopies> copies(4);
  std::vector<LooksAtBytes> sinks(4);
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    if (kind.guards) hooks.copies = &copies[static_cast<std::size_t>(worker)];
    if (kind.saves) hooks.checkpoints = &sinks[static_cast<std::size_t>(worker)];
  };
  if (kind.over_sockets) {
    changes.make_transports = [](int workers) { return make_socket_transports(workers); };
  }
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  const auto runs = run_in_threads(options, *data, on_device(changes, make_memory));
  const std::string races = race_report();
  return races.empty() && !runs ? runs.error().line() : races;
}

constexpr RunKind kOnlyFrames{.guards = false, .saves = false};
constexpr RunKind kOnlyGuards{.saves = false};
constexpr RunKind kOnlySaves{.guards = false};
constexpr RunKind kOverSockets{.over_sockets = true};
constexpr RunKind kAlone{.guards = false, .saves = false, .alone = true};
constexpr RunKind kProvisional{.provisional = true};

TEST(ForgottenOrders, AreNoneInTheRealMemory) {
  for (const RunKind& kind : {RunKind{}, kOnlyFrames, kOnlyGuards, kOnlySaves, kOverSockets, kAlone, kProvisional}) {
    EXPECT_EQ(mistakes_of(plain_memory, kind), "");
  }
}

struct Control {
  const char* name;
  MakeMemory memory;
  RunKind run{};
};

class ForgottenOrder : public testing::TestWithParam<Control> {};

TEST_P(ForgottenOrder, IsNoticed) { EXPECT_NE(mistakes_of(GetParam().memory, GetParam().run), ""); }

INSTANTIATE_TEST_SUITE_P(
    Device, ForgottenOrder,
    testing::Values(Control{"CopyOutAfterCompute", all_have<CopiesBeforeItIsComputed>()},
                    Control{"ReleaseAfterCopyOut", all_have<ReleasesWhatIsBeingCopied>()},
                    Control{"OverwriteAfterCopyOut", all_have<OverwritesWhatIsBeingCopied>()},
                    Control{"SendAfterCopyOut", all_have<ReadsTooEarly<DeviceMemory::Lane::kWire>>(), kOnlyFrames},
                    Control{"GuardAfterCopyOut", all_have<ReadsTooEarly<DeviceMemory::Lane::kBulk>>(), kOnlyGuards},
                    Control{"SaveAfterCopyOut", all_have<ReadsTooEarly<DeviceMemory::Lane::kBulk>>(), kOnlySaves},
                    Control{"FetchAfterCopyOut", all_have<FetchesTooEarly>(), kAlone},
                    Control{"InitialWeights", all_have<CopiesInTooEarly>(), kAlone},
                    Control{"RecordAfterCopyOut", all_have<ReadsTheRecordTooEarly>()},
                    Control{"StagingAfterCopyIn", all_have<UsesStagingAgain>()},
                    Control{"Zero", all_have<ZeroesTooEarly>()}, Control{"Swap", all_have<SwapsTooEarly>()},
                    Control{"CopyIn", all_have<CopiesInTooEarly>()}, Control{"Add", all_have<AddsTooEarly>()},
                    Control{"Step", all_have<StepsTooEarly>()}, Control{"Note", all_have<NotesTooEarly>()},
                    Control{"Trial", all_have<TriesTooEarly>(), kProvisional}),
    [](const auto& test) { return test.param.name; });

// The kernel reads and writes pinned memory then. It refuses what a copy is still at work on, so that the run fails.
INSTANTIATE_TEST_SUITE_P(OverSockets, ForgottenOrder,
                         testing::Values(Control{"SendAfterCopyOut",
                                                 all_have<ReadsTooEarly<DeviceMemory::Lane::kWire>>(), kOverSockets},
                                         Control{"GuardAfterCopyOut",
                                                 all_have<ReadsTooEarly<DeviceMemory::Lane::kBulk>>(),
                                                 {.saves = false, .over_sockets = true}},
                                         Control{"StagingAfterCopyIn", all_have<UsesStagingAgain>(), kOverSockets},
                                         Control{"CopyIn", all_have<CopiesInTooEarly>(), kOverSockets}),
                         [](const auto& test) { return test.param.name; });

// As a minibatch is uploaded.
TEST(ForgottenOrders, OfAnUploadAreNoticed) {
  forget_mistakes();
  const TorchDeviceMemory memory(prepared_device());
  const at::Tensor pinned = at::zeros({1024}, at::TensorOptions(at::kLong).pinned_memory(true));
  at::Tensor uploaded;
  for (int i = 0; i < 8; ++i) {
    uploaded = pinned.to(memory.device(), true);
    pinned.fill_(i);
  }
  EXPECT_NE(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
