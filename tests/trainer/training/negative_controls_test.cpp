#include <gtest/gtest.h>

#include "tests/trainer/training/all_workers.h"
#include "tests/trainer/training/comparison.h"
#include "tests/trainer/training/training_support.h"
#include "trainer/worker.h"

// Executors with one fault each. The comparison that the right executor passes must fail for them, or it proves
// nothing.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::Op;
using scheduler::OpKind;
using scheduler::ScheduleKind;

// train() with another kind of worker.
template <typename WrongWorker>
class Faulty : public Worker {
 public:
  using Worker::Worker;

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    auto shape = shape_of(options, transport);
    if (!shape) return shape.error();
    WrongWorker worker(options, transport, hooks, *std::move(shape));
    worker.prepare(data);
    EVERSTEP_TRY(worker.run(options.steps));
    worker.hand_over_weights();
    return worker.result();
  }
};

class Faultless final : public Faulty<Faultless> {
 public:
  using Faulty::Faulty;
};

// Updates before the last stage's first backward of the new window instead of after it.
class UpdatesAfterTheWrongBackward final : public Faulty<UpdatesAfterTheWrongBackward> {
 public:
  using Faulty::Faulty;

 private:
  Op op_at(std::int64_t index) const override {
    if (is_swapped(index)) return stream().at(index + 1);
    if (index > 0 && is_swapped(index - 1)) return stream().at(index - 1);
    return stream().at(index);
  }

  // Whether this is a new window's backward that stands directly before the update of the window before.
  bool is_swapped(std::int64_t index) const {
    if (index + 1 >= stream().size()) return false;
    const Op op = stream().at(index);
    const Op next = stream().at(index + 1);
    return op.kind == OpKind::kBackward && next.kind == OpKind::kUpdate && next.window < op.window;
  }
};

// Adds every gradient to the buffer of the window whose update comes next.
class DropsTheNewWindowsBuffer final : public Faulty<DropsTheNewWindowsBuffer> {
 public:
  using Faulty::Faulty;

 private:
  int parity_of(const Op&) const override { return static_cast<int>(version().value % 2); }
};

class NegativeControl : public testing::TestWithParam<TestPlan> {
 protected:
  template <typename AnyWorker>
  std::string difference_with() const {
    RunChanges changes;
    changes.program = AnyWorker::train;
    return difference_from(oracle_, run_in_threads(options_, *data_, changes));
  }

  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), GetParam());
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
  OracleRun oracle_ = run_oracle(options_, *data_);
};

TEST_P(NegativeControl, AFaultlessExecutorPasses) { EXPECT_EQ(difference_with<Faultless>(), ""); }

TEST_P(NegativeControl, AnUpdateAfterTheWrongBackwardIsCaught) {
  EXPECT_NE(difference_with<UpdatesAfterTheWrongBackward>(), "");
}

TEST_P(NegativeControl, ADroppedNewWindowBufferIsCaught) { EXPECT_NE(difference_with<DropsTheNewWindowsBuffer>(), ""); }

// Floats remember in which order they were added: that of this plan's backwards and replicas.
TEST_P(NegativeControl, SumsInTheOrderOfArrivalAreCaught) {
  options_.accumulation = Accumulation::kFloat;
  EXPECT_NE(difference_with<Faultless>(), "");
}

INSTANTIATE_TEST_SUITE_P(Amdp, NegativeControl,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4},
                                         TestPlan{ScheduleKind::kAmdp, 4, 1, 8}),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace everstep::trainer
