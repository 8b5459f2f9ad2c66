// Gradients that nobody may apply: who finds out where they come from, and who stops.
#include "trainer/update/anomaly.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "scheduler/versions.h"
#include "tests/trainer/loop/counting_stage.h"
#include "trainer/loop/train_loop.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Fault {
  std::set<std::int64_t> positions{};
  int stage = 0;
  bool forward = true;
  float scale = kNaN;  // of what that op computes
};

// Passes on what it gets, as arithmetic does: what is not a number stays none, and a gradient's size its size.
class PassingStage final : public StageCompute {
 public:
  PassingStage(const StageRequest& request, int stage, const Fault& fault, std::atomic<int>& runs)
      : request_(request), stage_(stage), fault_(fault), runs_(runs) {}

  void select_weights(WeightSet) override {}
  Result<Output> forward(Position position, Buffer input) override {
    const float value = (input.empty() ? 1 : input.as<float>()[0]) * factor(position, true);
    met_[position.value] = value;
    const bool is_last = request_.layout.end_block == request_.model.blocks();
    return is_last ? Output{{}, value} : Output{boundary(value), 0};
  }

  Result<Buffer> backward_input(Position position, Buffer gradient, int) override {
    const float arrived = (gradient.empty() ? 1 : gradient.as<float>()[0]) * met_.at(position.value);
    const float value = met_[position.value] = arrived * factor(position, false);
    return request_.layout.first_block == 0 ? Buffer{} : boundary(value);
  }

  Status backward_weights(Position position, int parity) override {
    const float value = met_.at(position.value);
    for (float& sum : request_.memory.gradients[parity].as<float>()) sum += value;
    overflowed_[parity] = overflowed_[parity] || !std::isfinite(value);
    return {};
  }

  Result<Output> evaluate(std::int64_t, Buffer) override { return Output{}; }
  Noted<bool> take_overflow(int parity) override { return std::exchange(overflowed_[parity], false); }

 private:
  float factor(Position position, bool forward) const {
    const bool is_it = stage_ == fault_.stage && forward == fault_.forward && fault_.positions.contains(position.value);
    if (is_it) ++runs_;
    return is_it ? fault_.scale : 1;
  }
  Buffer boundary(float value) const {
    Buffer buffer = allocate_zeroed(request_.model.boundary_bytes());
    buffer.as<float>().back() = buffer.as<float>()[0] = value;
    return buffer;
  }

  StageRequest request_;
  int stage_;
  const Fault& fault_;
  std::atomic<int>& runs_;
  std::map<std::int64_t, float> met_;
  std::array<bool, 2> overflowed_{};
};

struct Outcome {
  std::vector<Result<TrainResult>> results;
  std::vector<std::optional<Anomaly>> told;  // by worker
  std::vector<std::vector<bool>> skipped;    // by worker, of each update
  std::vector<std::atomic<int>> faults;      // that happened on each worker

  explicit Outcome(int workers) : results(workers, Error{}), told(workers), skipped(workers), faults(workers) {}
  int culprit() const {
    return static_cast<int>(std::ranges::find_if(faults, [](const auto& count) { return count > 0; }) - faults.begin());
  }
};

Outcome run_with(const TrainOptions& options, const Fault& fault) {
  const int workers = options.schedule.depth * options.schedule.width;
  auto transports = make_thread_transports(workers, {std::chrono::microseconds(50), 5});
  Outcome run(workers);
  const auto data = make_no_data();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      TrainHooks hooks;
      hooks.now = [] { return Tick{0}; };
      hooks.make_stage = [&, worker](const StageRequest& request) {
        int stage = 0;
        while (options.cuts[stage] != request.layout.first_block) ++stage;
        return std::make_unique<PassingStage>(request, stage, fault, run.faults[worker]);
      };
      hooks.restore = [](const StageLayout&, const StageState&) { return Status(); };
      hooks.on_step = [&, worker](const StepReport& report) { run.skipped[worker].push_back(report.skipped); };
      hooks.on_anomaly = [&, worker](const Anomaly& anomaly) { run.told[worker] = anomaly; };
      run.results[worker] = train(options, *data, *transports[worker], hooks);
      transports[worker]->leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return run;
}

TrainOptions options_of(ScheduleKind kind, int depth, int width, int window) {
  TrainOptions options = counting_options(kind, depth, width, window, 5);
  options.anomalies.stops = true;
  return options;
}

constexpr std::int64_t kWindow = 2;  // in which it goes wrong

struct Shape {
  ScheduleKind kind;
  int depth;
  int width;
  int window;
};

class AnomalyIn : public testing::TestWithParam<Shape> {
 protected:
  TrainOptions options_ = options_of(GetParam().kind, GetParam().depth, GetParam().width, GetParam().window);
  int stages_ = static_cast<int>(options_.cuts.size()) - 1;
  int window_ = GetParam().window;
};

TEST_P(AnomalyIn, IsToldToAllWithItsSourceBeforeAnythingIsApplied) {
  for (int stage = 0; stage < stages_; ++stage) {
    for (const bool forward : {true, false}) {
      const Position position{kWindow * window_ + window_ - 2};
      const Outcome run = run_with(options_, {{position.value}, stage, forward});
      ASSERT_LT(run.culprit(), std::ssize(run.faults));
      const Anomaly expected{kWindow, Anomaly::Source{run.culprit(), position, true}, 0};
      EXPECT_THAT(run.told, Each(expected)) << "stage " << stage << (forward ? " forward" : " backward");
      for (const auto& result : run.results) {
        ASSERT_FALSE(result);
        EXPECT_THAT(result.error().message, AllOf(HasSubstr("window 2 is not finite"),
                                                  HasSubstr("minibatch " + std::to_string(position.value))));
      }
      EXPECT_THAT(run.skipped, Each(std::vector<bool>(kWindow, false)));
    }
  }
}

TEST_P(AnomalyIn, NamesTheFirstOfSeveralMinibatches) {
  const std::int64_t first = kWindow * window_ + 1;
  const Outcome run = run_with(options_, {{first, first + 1, first + 2}, stages_ - 1, true});
  for (const auto& told : run.told) {
    ASSERT_TRUE(told && told->source);
    EXPECT_EQ(told->source->position, Position{first});
  }
}

TEST_P(AnomalyIn, IsSkippedByAllWhereNothingStops) {
  options_.anomalies.stops = false;
  const Outcome run = run_with(options_, {{kWindow * window_}, 0, true});
  for (const auto& result : run.results) EXPECT_TRUE(result) << result.error();
  EXPECT_THAT(run.told, Each(std::nullopt));
  EXPECT_THAT(run.skipped, Each(std::vector<bool>{false, false, true, false, false}));
}

TEST_P(AnomalyIn, IsSkippedInTheLastTryOfItsWindowAndNoOther) {
  options_.anomalies.window = kWindow;
  options_.anomalies.skips = true;
  const Outcome skipped = run_with(options_, {{kWindow * window_}, 0, true});
  EXPECT_THAT(skipped.skipped, Each(std::vector<bool>{false, false, true, false, false}));
  const Outcome stopped = run_with(options_, {{(kWindow + 2) * window_}, 0, true});
  EXPECT_THAT(stopped.skipped, Each(std::vector<bool>(kWindow + 2, false)));
  for (const auto& told : stopped.told) EXPECT_TRUE(told);
}

// Weights that are ruined give nothing else, and running every window three times would not mend them.
TEST_P(AnomalyIn, StopsNobodyAfterAWindowThatWasSkipped) {
  options_.anomalies.window = kWindow;
  options_.anomalies.skips = true;
  const Outcome run = run_with(options_, {{kWindow * window_, (kWindow + 1) * window_}, 0, true});
  EXPECT_THAT(run.skipped, Each(std::vector<bool>{false, false, true, true, false}));
}

// A window in flight may have begun on what the skipped one made. Its data is not to blame, also where it is run from a
// live checkpoint.
TEST_P(AnomalyIn, StopsNobodyAfterAResumeBehindAWindowThatWasSkipped) {
  ResumePoint& resume = options_.resume.emplace();
  resume.version = {kWindow + 1};
  resume.position = {(kWindow + 1) * window_};
  resume.applied = kWindow;
  resume.continues_live = is_asynchronous(options_.schedule.kind);
  resume.continues_provisional = resume.continues_live;
  options_.schedule.provisional = resume.continues_live ? 1 : 0;
  const Fault fault{{(kWindow + 1) * window_}, 0, true};
  EXPECT_THAT(run_with(options_, fault).skipped, Each(std::vector<bool>{})) << "nothing was skipped before: it stops";
  resume.skipped_in_a_row = 1;
  EXPECT_THAT(run_with(options_, fault).skipped, Each(std::vector<bool>{true, false}));
}

// Found by users: 399 of 400 updates were skipped, and the run was said to have ended well.
TEST_P(AnomalyIn, EndsTheRunForAllWhenSoManyInARowWereSkipped) {
  options_.anomalies.stops = false;
  options_.anomalies.most_in_a_row = 2;
  const Outcome run = run_with(options_, {{kWindow * window_, (kWindow + 1) * window_}, 0, true});
  EXPECT_THAT(run.skipped, Each(std::vector<bool>{false, false, true, true}));
  for (const auto& result : run.results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("2 updates in a row were skipped, the last one at step 4"));
  }
  const Outcome others = run_with(options_, {{(kWindow - 1) * window_, (kWindow + 1) * window_}, 0, true});
  EXPECT_THAT(others.skipped, Each(std::vector<bool>{false, true, false, true, false}));
  for (const auto& result : others.results) {
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(result->last.skipped_in_all, 2);
    EXPECT_EQ(result->state.resume.skipped_in_a_row, 0);
  }
}

TEST_P(AnomalyIn, DoesNotHappenWithTheMinibatchThatIsLeftOut) {
  options_.blanks = {{Position{kWindow * window_ + 1}, 0, true}};
  const Outcome run = run_with(options_, {{kWindow * window_ + 1}, stages_ - 1, false});
  EXPECT_THAT(run.skipped, Each(std::vector<bool>(5, false)));
  EXPECT_EQ(run.culprit(), std::ssize(run.faults)) << "it was not run";
}

INSTANTIATE_TEST_SUITE_P(Shapes, AnomalyIn,
                         testing::Values(Shape{ScheduleKind::kAmdp, 4, 1, 12}, Shape{ScheduleKind::kAmdp, 4, 2, 24},
                                         Shape{ScheduleKind::kAmdp, 2, 1, 6}, Shape{ScheduleKind::kOneFOneB, 3, 1, 5},
                                         Shape{ScheduleKind::kOneFOneB, 1, 1, 3}),
                         [](const auto& test) {
                           return std::string(test.param.kind == ScheduleKind::kAmdp ? "amdp" : "1f1b") + "_D" +
                                  std::to_string(test.param.depth) + "_W" + std::to_string(test.param.width);
                         });

// Those that met two versions of the weights in a full pipeline meet one when the window is run again, drained.
TEST(Anomaly, RepeatsWhereAllPassesMetOneVersion) {
  const TrainOptions options = options_of(ScheduleKind::kAmdp, 4, 1, 12);
  scheduler::ScheduleRequest request = options.schedule;
  request.windows = 2;
  const scheduler::Schedule schedule = scheduler::make_schedule(request).value();
  const scheduler::VersionTable table = scheduler::trace_versions(schedule);
  std::set<std::int64_t> meets_two;
  for (int worker = 0; worker < 4; ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const scheduler::Op& op = schedule.workers[worker][i];
      if (is_compute(op) && op.window == 1 && table.seen[worker][i].value == 0) {
        meets_two.insert(schedule.position_of(worker, op).value - 12);
      }
    }
  }
  ASSERT_FALSE(meets_two.empty());
  ASSERT_LT(meets_two.size(), 12U);
  UpdateDecision decision;
  decision.finite = false;
  for (int minibatch = 0; minibatch < 12; ++minibatch) {
    std::vector<UpdateRecord> records(4);
    records[2].source = minibatch;
    const auto full = find_anomaly(schedule, records, decision, 7, 0, false);
    EXPECT_EQ(full->source, (Anomaly::Source{2, {7 * 12 + minibatch}, !meets_two.contains(minibatch)}));
    EXPECT_TRUE(find_anomaly(schedule, records, decision, 7, 0, true)->source->repeats);
  }
}

TEST(Anomaly, IsANormFarAboveTheMedianOfThoseBefore) {
  TrainOptions options = counting_options(ScheduleKind::kOneFOneB, 2, 1, 4, 14);
  options.anomalies = {.stops = true, .explode_factor = 5};
  const Fault large{{10 * 4}, 1, false, 100};
  const Outcome run = run_with(options, large);
  for (const auto& told : run.told) {
    ASSERT_TRUE(told);
    EXPECT_EQ(told->window, 10);
    EXPECT_GT(told->norm_limit, 0);
    EXPECT_EQ(told->source, std::nullopt);
  }
  options.anomalies.window = 10;
  options.anomalies.norm_limit = run.told[0]->norm_limit;
  options.anomalies.skips = true;
  for (const auto& skipped : run_with(options, large).skipped) EXPECT_EQ(std::ranges::count(skipped, true), 1);
  options.anomalies = {.stops = true, .explode_factor = 1000};
  for (const auto& result : run_with(options, large).results) EXPECT_TRUE(result) << result.error();
  options.anomalies = {.stops = true};
  for (const auto& result : run_with(options, large).results) EXPECT_TRUE(result) << result.error();
}

// Skipped windows leave the weights as they are, so nothing else could ever end that.
TEST(Anomaly, IsNoNormThatStaysLarge) {
  TrainOptions options = counting_options(ScheduleKind::kOneFOneB, 2, 1, 4, 30);
  options.anomalies = {.explode_factor = 5};
  Fault large{{}, 1, false, 100};
  for (std::int64_t position = 10 * 4; position < 30 * 4; ++position) large.positions.insert(position);
  for (const std::vector<bool>& skipped : run_with(options, large).skipped) {
    ASSERT_EQ(skipped.size(), 30U);
    EXPECT_TRUE(skipped[10]);
    EXPECT_LE(std::ranges::count(skipped, true), 10);
    EXPECT_FALSE(skipped.back());
  }
}

TEST(Anomaly, IsNoNormBeforeThereAreEnoughToCompareWith) {
  NormHistory norms;
  for (int i = 0; i < 7; ++i) norms.add(1);
  EXPECT_EQ(norms.limit(2), 0);
  norms.add(1);
  EXPECT_EQ(norms.limit(2), 2);
  for (int i = 0; i < 16; ++i) norms.add(10);
  EXPECT_EQ(norms.limit(2), 20) << "the oldest are forgotten";
}

TEST(Anomaly, IsEveryNumberThatIsNotFiniteInEitherPrecision) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Buffer floats = allocate_zeroed(37 * sizeof(float));
  for (const float finite : {0.0F, -0.0F, kLargest, -kLargest, 1e-45F}) {
    floats.as<float>()[36] = finite;
    EXPECT_TRUE(is_finite(floats, Precision::kFp32)) << finite;
  }
  for (const float other : {kInfinity, -kInfinity, kNaN, -kNaN}) {
    floats.as<float>()[36] = other;
    EXPECT_FALSE(is_finite(floats, Precision::kFp32)) << other;
    const Buffer halves = allocate_zeroed(9 * sizeof(std::uint16_t));
    EXPECT_TRUE(is_finite(halves, Precision::kBf16));
    halves.as<std::uint16_t>()[8] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(other) >> 16U);
    EXPECT_FALSE(is_finite(halves, Precision::kBf16)) << other;
  }
  EXPECT_TRUE(is_finite({}, Precision::kFp32)) << "there is nothing at the ends of a pipeline";
}

}  // namespace
}  // namespace everstep::trainer
