#include <algorithm>
#include <array>
#include <functional>

#include <gmock/gmock.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/faulty.h"
#include "tests/trainer/loop/training_support.h"
#include "trainer/torch/torch_stage.h"
#include "trainer/update/sums.h"

// Executors with one fault each. The comparison that the right executor passes must fail for them, or it proves
// nothing.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::Op;
using scheduler::OpKind;
using scheduler::ScheduleKind;

class Faultless final : public Faulty<Faultless> {
 public:
  using Faulty::Faulty;
};

// Swaps an update with an op beside it, which has no input of another worker.
template <typename WrongWorker>
class MovesUpdates : public Faulty<WrongWorker> {
 public:
  using Faulty<WrongWorker>::Faulty;

 private:
  Op op_at(std::int64_t index) const override {
    if (is_swapped(index)) return this->stream().at(index + 1);
    if (index > 0 && is_swapped(index - 1)) return this->stream().at(index - 1);
    return this->stream().at(index);
  }

  bool is_swapped(std::int64_t index) const {
    return index + 1 < this->stream().size() && swaps(this->stream().at(index), this->stream().at(index + 1));
  }

  virtual bool swaps(const Op& op, const Op& next) const = 0;
};

// Updates before the last stage's first backward of the new window instead of after it.
class UpdatesAfterTheWrongBackward final : public MovesUpdates<UpdatesAfterTheWrongBackward> {
 public:
  using MovesUpdates::MovesUpdates;

 private:
  bool swaps(const Op& op, const Op& next) const override {
    return op.kind == OpKind::kBackward && next.kind == OpKind::kUpdate && next.window < op.window;
  }
};

// Updates one op too late: behind a forward of stage 0 that is to meet the new weights.
class UpdatesOneSlotLate final : public MovesUpdates<UpdatesOneSlotLate> {
 public:
  using MovesUpdates::MovesUpdates;

 private:
  bool swaps(const Op& op, const Op& next) const override {
    return op.kind == OpKind::kUpdate && next.kind == OpKind::kForward && next.stage == 0;
  }
};

// Adds every gradient to the buffer of the window whose update comes next. Only where that buffer stays: a transport
// complains, if it has not been quick, of a sum that changes on its way to the stage's owner.
class DropsTheNewWindowsBuffer final : public Faulty<DropsTheNewWindowsBuffer> {
 public:
  using Faulty::Faulty;

 private:
  int parity_of(const Op& op) const override {
    return static_cast<int>((is_owner_of(op.stage) ? updates() : op.window) % 2);
  }
};

// Adds the gradients of the weights when their window's update is over. Before that the sums were sent and applied.
class AddsWeightsAfterTheirReduce final : public Faulty<AddsWeightsAfterTheirReduce> {
 public:
  using Faulty::Faulty;

 private:
  std::optional<WeightsOp> weights_before(std::int64_t index, const Op& /*op*/) override {
    const bool is_after_update = index > 0 && stream().at(index - 1).kind == OpKind::kUpdate;
    return is_after_update ? pending_weights().take_oldest() : std::nullopt;
  }
};

// The order in which the gradients of a chunk's minibatches reach their sum, given that of the schedule.
using Arrival = std::function<void(std::vector<Buffer>& gradients)>;

void as_scheduled(std::vector<Buffer>&) {}
void last_comes_first(std::vector<Buffer>& gradients) { std::reverse(gradients.begin(), gradients.end()); }

// Sums the minibatches of a window in the order of their arrival.
class SumsOnArrival final : public StageCompute {
 public:
  SumsOnArrival(const StageRequest& request, Arrival arrival)
      : inner_(make_torch_stage(request)), request_(request), arrival_(std::move(arrival)) {}

  void select_weights(WeightSet set) override { inner_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return inner_->forward(position, std::move(input));
  }

  // Sums anew what has arrived of the window: with its last backward, before the sum is sent, that is all.
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    const Buffer& sum = request_.memory.gradients[parity];
    set_zero(sum);
    auto input_gradient = inner_->backward_input(position, std::move(output_gradient), parity);
    EVERSTEP_TRY(inner_->backward_weights(position, parity));
    std::vector<Buffer> gradients = kept_with(position, parity, sum);
    arrival_(gradients);
    set_zero(sum);
    for (const Buffer& gradient : gradients) add_sums(request_.accumulation, sum, gradient);
    return input_gradient;
  }

  Status backward_weights(Position, int) override { return {}; }

  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return inner_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override { return inner_->take_overflow(parity); }

 private:
  struct Window {
    std::int64_t number = -1;
    std::vector<Buffer> gradients;  // one per minibatch
  };

  static void set_zero(const Buffer& buffer) { std::fill_n(buffer.data, buffer.size, std::byte{0}); }

  const std::vector<Buffer>& kept_with(Position position, int parity, const Buffer& gradient) {
    Window& window = windows_[parity];
    const std::int64_t number = position.value / request_.window;
    if (window.number != number) window = {number, {}};
    const Buffer copy = allocate_scratch(gradient.size);
    std::copy_n(gradient.data, gradient.size, copy.data);
    window.gradients.push_back(copy);
    return window.gradients;
  }

  std::unique_ptr<StageCompute> inner_;
  StageRequest request_;
  Arrival arrival_;
  std::array<Window, 2> windows_;  // by parity
};

class NegativeControl : public testing::TestWithParam<TestPlan> {
 protected:
  using Runs = Result<std::vector<WorkerRun>>;

  template <typename AnyWorker>
  Runs runs_of() const {
    RunChanges changes;
    changes.program = AnyWorker::train;
    return run_in_threads(options_, *data_, changes);
  }

  Runs runs_with(const Arrival& arrival) const {
    RunChanges changes;
    changes.change_hooks = [&](int, TrainHooks& hooks) {
      hooks.make_stage = [&](const StageRequest& request) { return std::make_unique<SumsOnArrival>(request, arrival); };
    };
    return run_in_threads(options_, *data_, changes);
  }

  // A run that fails is not caught by the comparison: it has to end well, with other numbers.
  void expect_caught(const Runs& runs, const std::string& difference) const {
    ASSERT_TRUE(runs.ok()) << runs.error();
    for (const WorkerRun& run : *runs) ASSERT_EQ(std::ssize(run.steps), options_.steps);
    EXPECT_THAT(difference, testing::ContainsRegex("(loss|norm) of update [0-9]+ is .* instead of|"
                                                   "stage [0-9]+: .*\\[[0-9]+\\] is .* instead of"));
  }

  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), GetParam());
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
};

TEST_P(NegativeControl, AFaultlessExecutorPasses) {
  EXPECT_EQ(difference_from(run_oracle(options_, *data_), runs_of<Faultless>()), "");
}

TEST_P(NegativeControl, AnUpdateAfterTheWrongBackwardIsCaught) {
  const Runs runs = runs_of<UpdatesAfterTheWrongBackward>();
  expect_caught(runs, difference_from(run_oracle(options_, *data_), runs));
}

TEST_P(NegativeControl, ADroppedNewWindowBufferIsCaught) {
  const Runs runs = runs_of<DropsTheNewWindowsBuffer>();
  expect_caught(runs, difference_from(run_oracle(options_, *data_), runs));
}

TEST_P(NegativeControl, WeightsAddedAfterTheirReduceAreCaught) {
  const Runs runs = runs_of<AddsWeightsAfterTheirReduce>();
  expect_caught(runs, difference_from(run_oracle(options_, *data_), runs));
}

// Floats remember in which order they were added.
TEST_P(NegativeControl, FloatSumsInTheOrderOfArrivalAreCaught) {
  options_.accumulation = Accumulation::kFloat;
  const Runs scheduled = runs_with(as_scheduled);
  ASSERT_EQ(difference_between(scheduled, runs_with(as_scheduled)), "");

  const Runs other = runs_with(last_comes_first);
  ASSERT_NO_FATAL_FAILURE(expect_caught(other, difference_between(scheduled, other)));
  EXPECT_NE(joined_weights(*other), joined_weights(*scheduled));
}

// The order is all that is wrong with them.
TEST_P(NegativeControl, FixedPointSumsInTheOrderOfArrivalPass) {
  const OracleRun oracle = run_oracle(options_, *data_);
  EXPECT_EQ(difference_from(oracle, runs_with(as_scheduled)), "");
  EXPECT_EQ(difference_from(oracle, runs_with(last_comes_first)), "");
}

INSTANTIATE_TEST_SUITE_P(Amdp, NegativeControl,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4}, TestPlan{ScheduleKind::kAmdp, 4, 1, 8},
                                         provisional({ScheduleKind::kAmdp, 4, 1, 8}, 1)),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(Clockwork, NegativeControl, testing::Values(clockwork(4, 2, 1, 8, 1), clockwork(3, 1, 1, 8)),
                         [](const auto& test) { return name_of(test.param); });

// Clockwork's updates stand between two slots.
class UpdateOneSlotOff : public NegativeControl {};

TEST_P(UpdateOneSlotOff, IsCaught) {
  const Runs runs = runs_of<UpdatesOneSlotLate>();
  expect_caught(runs, difference_from(run_oracle(options_, *data_), runs));
}

INSTANTIATE_TEST_SUITE_P(Clockwork, UpdateOneSlotOff,
                         testing::Values(clockwork(4, 2, 1, 8), clockwork(3, 1, 1, 8), clockwork(4, 2, 2, 11)),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace everstep::trainer
