// The reference executor with its blocks on the device, as `everstep replay --device` has them: the CPU's bits, from
// the beginning and from a state that was put in place; and orders that it must not forget.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/forgetful_memory.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/reference/oracle.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

constexpr int kWindow = 4;
constexpr std::int64_t kWindows = 3;

TrainOptions training(ModelFamily family, Precision precision, Accumulation accumulation) {
  TrainOptions options = under_plan(tiny_training(family, 2), {ScheduleKind::kAmdp, 2, 1, kWindow});
  options.model.precision = precision;
  options.accumulation = accumulation;
  return options;
}

HistoryEntry entry_of(const TrainOptions& options, std::int64_t window, int first, int end) {
  HistoryEntry entry;
  entry.window = window;
  entry.first = first;
  entry.end = end;
  entry.plan.kind = options.schedule.kind;
  entry.plan.depth = options.schedule.depth;
  entry.plan.width = options.schedule.width;
  entry.plan.window = options.schedule.window;
  entry.plan.preload = options.schedule.preload;
  entry.plan.provisional = options.schedule.provisional;
  entry.plan.cuts = options.cuts;
  entry.flushed = window == 0;
  entry.provisional = options.schedule.provisional > 0 && !entry.flushed;
  return entry;
}

// What a replay sees: losses, norms and the whole state, after part of a window and after each update.
class Seen {
 public:
  void add(const ReferenceRun& run, const ReferenceStep& step) {
    for (const double loss : step.losses) numbers.push_back(loss);
    if (step.update) numbers.push_back(step.update->gradient_norm);
    for (int block = 0; block < run.blocks(); ++block) {
      const StageState state = run.state(block);
      for (const Buffer& buffer : {state.weights, state.previous, state.first_moment, state.second_moment, state.master,
                                   state.gradients, state.provisional}) {
        bytes.append(reinterpret_cast<const char*>(buffer.data), buffer.size);
      }
    }
  }

  std::vector<double> numbers;
  std::string bytes;
};

// In two parts of each window; nothing for `device`: on the CPU.
Seen replayed(const TrainOptions& options, DeviceMemory* device) {
  const auto data = shipped_corpus(options.model);
  TrainHooks hooks = reference_hooks(options.model);
  hooks.device = device;
  ReferenceRun run(options, *data, hooks);
  Seen seen;
  for (std::int64_t window = 0; window < kWindows; ++window) {
    for (const auto& [first, end] : {std::pair{0, 2}, std::pair{2, kWindow}}) {
      const auto step = run.run(entry_of(options, window, first, end));
      EXPECT_TRUE(step) << step.error();
      if (step) seen.add(run, *step);
    }
  }
  seen.numbers.push_back(run.evaluate(2).value());
  return seen;
}

std::string difference(const Seen& expected, const Seen& other) {
  if (expected.bytes != other.bytes) return "other bytes";
  return expected.numbers == other.numbers ? "" : "other numbers";
}

TEST(ReplayOnDevice, HasTheCpusBits) {
  for (const ModelFamily family : {ModelFamily::kGpt, ModelFamily::kBert}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      for (const Accumulation accumulation : {Accumulation::kFloat, Accumulation::kFixedPoint}) {
        TrainOptions options = training(family, precision, accumulation);
        options.schedule.provisional = accumulation == Accumulation::kFixedPoint ? 1 : 0;
        const Seen expected = replayed(options, nullptr);
        forget_mistakes();
        EXPECT_EQ(difference(expected, replayed(options, plain_memory(0).get())), "");
        EXPECT_EQ(race_report(), "");
      }
    }
  }
}

// From inside a window: gradients are part of what is put in place.
TEST(ReplayOnDevice, GoesOnFromAStateThatIsPutInPlace) {
  const TrainOptions options = training(ModelFamily::kGpt, Precision::kBf16, Accumulation::kFixedPoint);
  const auto data = shipped_corpus(options.model);
  const auto last_half = entry_of(options, kWindows, 2, kWindow);
  const auto end_of = [&](ReferenceRun& run) {
    Seen seen;
    const auto step = run.run(last_half);
    EXPECT_TRUE(step) << step.error();
    if (step) seen.add(run, *step);
    return seen;
  };
  ReferenceRun before(options, *data, reference_hooks(options.model));
  for (std::int64_t window = 0; window < kWindows; ++window) {
    ASSERT_TRUE(before.run(entry_of(options, window, 0, kWindow)));
  }
  ASSERT_TRUE(before.run(entry_of(options, kWindows, 0, 2)));

  forget_mistakes();
  const auto memory = plain_memory(0);
  TrainHooks hooks = reference_hooks(options.model);
  hooks.device = memory.get();
  ReferenceRun resumed(options, *data, hooks);
  for (std::int64_t window = 0; window < kWindows; ++window) {
    ASSERT_TRUE(resumed.pass_over(entry_of(options, window, 0, kWindow)));
  }
  ASSERT_TRUE(resumed.pass_over(entry_of(options, kWindows, 0, 2)));
  for (int block = 0; block < before.blocks(); ++block) {
    const StageState from = before.state(block);
    const StageState to = resumed.state(block);
    for (const auto tensor : {&StageState::weights, &StageState::previous, &StageState::first_moment,
                              &StageState::second_moment, &StageState::master, &StageState::gradients}) {
      std::memcpy((to.*tensor).data, (from.*tensor).data, (from.*tensor).size);
    }
  }
  ResumePoint point;
  point.position = before.position();
  point.version = {kWindows};
  point.applied = before.applied();
  point.continues_live = true;
  resumed.resume(point);
  EXPECT_EQ(difference(end_of(before), end_of(resumed)), "");
  EXPECT_EQ(race_report(), "");
}

struct Control {
  const char* name;
  MakeMemory memory;
};

class ForgottenOrderOfReplay : public testing::TestWithParam<Control> {};

TEST_P(ForgottenOrderOfReplay, IsNoticed) {
  const TrainOptions options = training(ModelFamily::kGpt, Precision::kFp32, Accumulation::kFixedPoint);
  forget_mistakes();
  replayed(options, GetParam().memory(0).get());
  EXPECT_NE(race_report(), "");
}

INSTANTIATE_TEST_SUITE_P(Device, ForgottenOrderOfReplay,
                         testing::Values(Control{"CopyIn", all_have<CopiesInTooEarly>()},
                                         Control{"FetchAfterCopyOut", all_have<FetchesTooEarly>()},
                                         Control{"RecordAfterCopyOut", all_have<ReadsTheRecordTooEarly>()},
                                         Control{"CopyOutAfterCompute", all_have<CopiesBeforeItIsComputed>()},
                                         Control{"Zero", all_have<ZeroesTooEarly>()}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace everstep::accelerator
