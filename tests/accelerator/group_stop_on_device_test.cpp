// Chains of generations on the device, with deaths anywhere: a group that lost nobody keeps its sums, and what follows
// has the bits of a history that runs on the host.
#include <chrono>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "tests/accelerator/hosted_stage.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/random_chain.h"
#include "trainer/staging/staged_transport.h"
#include "trainer/torch/torch_device_memory.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ScheduleKind;

constexpr int kWindow = 12;
constexpr std::int64_t kSteps = 3;

// As WorkerDevice::train() does, with stages that know the host alone.
Result<TrainResult> train_on_device(const TrainOptions& options, const DataSource& data, Transport& transport,
                                    const TrainHooks& hooks) {
  TorchDeviceMemory memory(prepared_device());
  const auto staged = make_staged_transport(transport, memory);
  TrainHooks on_device = hooks;
  on_device.device = &memory;
  on_device.make_stage = [make = hooks.make_stage](const StageRequest& request) {
    return std::make_unique<HostedStage>(request, make);
  };
  auto result = train(options, data, *staged, on_device);
  if (result && result->end != RunEnd::kGroupStop) (void)staged->flush(std::chrono::seconds(20));
  return result;
}

GuardedChain chain_on_device(const TrainOptions& options) {
  GuardedChain chain(options);
  chain.train_with = train_on_device;
  return chain;
}

class GroupStopOnDevice : public testing::TestWithParam<ScheduleKind> {
 protected:
  GroupStopOnDevice() {
    prepared_device();
    race_report();
  }

  static GuardedGeneration two_groups() { return {GetParam(), 2, 2, names(0, 4)}; }
};

TEST_P(GroupStopOnDevice, KeepsWhatTheGroupHasRunWhereverAWorkerOfAnotherDies) {
  const TrainOptions options = chain_options(kWindow, kSteps);
  GuardedChain undisturbed = chain_on_device(options);
  ASSERT_TRUE(undisturbed.run(two_groups()));
  ASSERT_EQ(undisturbed.difference_from_reference(), "");
  int kept = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    GuardedChain chain = chain_on_device(options);
    const GuardedGeneration last = with_a_death(two_groups(), undisturbed, seed);
    const Status ran = chain.run(last);
    ASSERT_TRUE(ran) << ran.error();
    ASSERT_EQ(chain.difference_from_reference(), "");
    const std::vector<WindowHistory> ranges = chain.ranges_in_sums();
    kept += ranges.empty() ? 0 : 1;
    const std::vector<int> left = left_of(last);
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, static_cast<int>(left.size()), 1, left});
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{kSteps});
    EXPECT_EQ(run_again(chain, ranges), "");
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(race_report(), "");
}

TEST_P(GroupStopOnDevice, GoesTogetherWithCutsInsideWindows) {
  TrainOptions options = chain_options(kWindow, kSteps);
  options.checkpoints.every_rounds = 2;
  GuardedChain undisturbed = chain_on_device(options);
  ASSERT_TRUE(undisturbed.run(two_groups()));
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    SCOPED_TRACE(seed);
    GuardedChain chain = chain_on_device(options);
    const GuardedGeneration last = with_a_death(two_groups(), undisturbed, seed);
    ASSERT_TRUE(chain.run(last));
    const std::vector<int> left = left_of(last);
    ASSERT_TRUE(chain.run({ScheduleKind::kAmdp, 2, 1, {left[1], left[0]}, 1, {left.begin() + 2, left.end()}}));
    EXPECT_EQ(chain.version(), Version{kSteps});
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
  EXPECT_EQ(race_report(), "");
}

// The sums of a window that is skipped are zeroed on the device, on all of its workers.
TEST_P(GroupStopOnDevice, SkipsAWindowThatIsNotFinite) {
  GuardedChain chain = chain_on_device(chain_options(kWindow, kSteps));
  chain.poisoned = {kWindow + 3};
  ASSERT_TRUE(chain.run(two_groups()));
  EXPECT_EQ(chain.version(), Version{kSteps});
  const auto history = chain.history();
  EXPECT_TRUE(std::ranges::any_of(history, [](const WindowHistory& one) { return one.window == 1 && one.skipped; }));
  EXPECT_EQ(chain.difference_from_reference(), "");
  EXPECT_EQ(race_report(), "");
}

INSTANTIATE_TEST_SUITE_P(Device, GroupStopOnDevice, testing::Values(ScheduleKind::kAmdp, ScheduleKind::kOneFOneB),
                         [](const auto& test) { return test.param == ScheduleKind::kAmdp ? "Amdp" : "OneFOneB"; });

}  // namespace
}  // namespace everstep::accelerator
