#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/versions.h"
#include "tests/trainer/loop/counting_stage.h"
#include "tests/trainer/recovery/asked_stops.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using scheduler::Schedule;
using scheduler::ScheduleKind;
using scheduler::ScheduleRequest;

Tick now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

struct Outcome {
  std::vector<Result<TrainResult>> results;
  std::vector<std::vector<StepReport>> reports;  // per worker
  std::vector<double> validation;                // of worker 0
  std::vector<std::vector<scheduler::Op>> ops;   // per worker, as they ran
  Sightings sightings;
};

// All workers as threads. Frames are held back at random, so that nothing can rely on timing.
void run_all(const TrainOptions& options, Outcome& run, const std::atomic<int>* stop_at_step = nullptr) {
  const int workers = options.schedule.depth * options.schedule.width;
  auto transports = make_thread_transports(workers, {std::chrono::microseconds(100), 7});
  run.results.assign(workers, Error{});
  run.reports.resize(workers);
  run.ops.resize(workers);
  const auto data = make_no_data();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      Tick clock = 0;
      TrainHooks hooks;
      hooks.now = [&clock] { return clock; };
      hooks.make_stage = [&, worker](const StageRequest& request) {
        int stage = 0;
        while (options.cuts[stage] != request.layout.first_block) ++stage;
        return make_counting_stage(request, stage, worker, run.sightings, clock);
      };
      hooks.on_step = [&, worker](const StepReport& report) { run.reports[worker].push_back(report); };
      hooks.on_op = [&, worker](const OpRecord& record) { run.ops[worker].push_back(record.op); };
      if (worker == 0) hooks.on_validation = [&](std::int64_t, double loss) { run.validation.push_back(loss); };
      AskedStops stops([&, worker] {
        return stop_at_step != nullptr && worker == workers - 1 &&
               static_cast<int>(run.reports[worker].size()) >= *stop_at_step;
      });
      hooks.stops = &stops;
      run.results[worker] = train(options, *data, *transports[worker], hooks);
      if (run.results[worker]) {
        const Status closed = transports[worker]->close(std::chrono::seconds(20));
        if (!closed) run.results[worker] = closed.error();
      }
      transports[worker].reset();  // so that the others see a failure at once
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Shape {
  ScheduleKind kind;
  int depth;
  int width;
  int window;
};

std::string name_of(const ::testing::TestParamInfo<Shape>& info) {
  std::string name = std::string(to_string(info.param.kind)) + "_D" + std::to_string(info.param.depth) + "_W" +
                     std::to_string(info.param.width) + "_M" + std::to_string(info.param.window);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class LoopOver : public ::testing::TestWithParam<Shape> {
 protected:
  static constexpr int kSteps = 5;
  void SetUp() override {
    const Shape& shape = GetParam();
    options_ = counting_options(shape.kind, shape.depth, shape.width, shape.window, kSteps);
    run_all(options_, run_);
    for (const auto& result : run_.results) EXPECT_TRUE(result.ok()) << result.error();
    ASSERT_FALSE(HasFailure());
  }
  TrainOptions options_;
  Outcome run_;
};

// Invariant 15: each (minibatch, stage) gradient enters exactly one update, that of its own window.
TEST_P(LoopOver, EveryGradientEntersTheUpdateOfItsWindowOnce) {
  double elements = 0;
  for (int block = 0; block < options_.model.blocks(); ++block) {
    for (const ParameterSpec& parameter : parameters_of(options_.model, block)) {
      // The tied embedding is one parameter with two contributions: it counts once, doubled.
      const bool embedding = parameter.tied && block == 0;
      if (parameter.tied && !embedding) continue;
      elements += static_cast<double>(parameter.elements()) * (embedding ? 4 : 1);
    }
  }
  for (const auto& reports : run_.reports) {
    ASSERT_EQ(reports.size(), kSteps);
    for (const StepReport& report : reports) {
      EXPECT_DOUBLE_EQ(report.gradient_norm, GetParam().window * std::sqrt(elements)) << "step " << report.step;
    }
  }
}

// Invariants 12 to 14 as the version table states them, on weights that really changed.
TEST_P(LoopOver, EveryPassSeesTheVersionThatTheTableSays) {
  ScheduleRequest request = options_.schedule;
  request.windows = kSteps;
  const Schedule schedule = scheduler::make_schedule(request).value();
  const scheduler::VersionTable table = scheduler::trace_versions(schedule);
  std::map<std::pair<int, std::int64_t>, float> weight_of_version;  // per stage
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    std::size_t next = 0;
    const std::vector<Sighting>& seen = run_.sightings.of(worker);
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const scheduler::Op& op = schedule.workers[worker][i];
      if (!is_compute(op)) continue;
      ASSERT_LT(next, seen.size());
      const Sighting& sighting = seen[next++];
      EXPECT_EQ(sighting.stage, op.stage);
      EXPECT_EQ(sighting.forward, op.kind == scheduler::OpKind::kForward);
      EXPECT_EQ(sighting.position, schedule.position_of(worker, op).value);
      const auto [known, fresh] =
          weight_of_version.try_emplace({op.stage, table.seen[worker][i].value}, sighting.weight);
      EXPECT_EQ(known->second, sighting.weight) << to_string(op) << " of worker " << worker;
    }
    EXPECT_EQ(next, seen.size());
  }
  std::map<int, std::set<float>> distinct;
  for (const auto& [key, weight] : weight_of_version) {
    EXPECT_TRUE(distinct[key.first].insert(weight).second) << "version " << key.second << " changed nothing";
  }
}

// A backward's second half runs when there is time, but before anybody reads the sum, and in the order of the first.
TEST_P(LoopOver, EveryBackwardIsCompletedBeforeItsSumIsRead) {
  for (const std::vector<scheduler::Op>& ops : run_.ops) {
    std::map<int, std::deque<scheduler::Op>> pending;  // by stage
    std::size_t count = 0;
    for (const scheduler::Op& op : ops) {
      if (op.kind == scheduler::OpKind::kForward) {
        EXPECT_LE(count, 1U) << to_string(op);
      } else if (op.kind == scheduler::OpKind::kBackward) {
        pending[op.stage].push_back(weights_of(op));
        ++count;
      } else if (op.kind == scheduler::OpKind::kBackwardWeights) {
        ASSERT_FALSE(pending[op.stage].empty()) << to_string(op);
        EXPECT_EQ(pending[op.stage].front(), op) << to_string(op);
        pending[op.stage].pop_front();
        --count;
      } else if (op.kind == scheduler::OpKind::kStartReduce) {
        EXPECT_TRUE(pending[op.stage].empty()) << to_string(op);
      }
    }
    EXPECT_EQ(count, 0U);
  }
}

// Where the pipeline fills and drains, a stage may have run only one way between two updates.
TEST_P(LoopOver, EveryStageIsTimedApartOnEveryWorker) {
  const scheduler::Placement placement = *scheduler::Placement::make(GetParam().kind, GetParam().depth);
  for (const auto& reports : run_.reports) {
    for (std::size_t worker = 0; worker < run_.reports.size(); ++worker) {
      std::vector<Tick> expected;
      for (const int stage : placement.stages_on(static_cast<int>(worker) % GetParam().depth)) {
        expected.push_back(3 * (stage + 1));
      }
      std::vector<Tick> seen(expected.size(), 0);
      for (const StepReport& report : reports) {
        ASSERT_EQ(report.stage_times.size(), run_.reports.size());
        const std::vector<Tick>& times = report.stage_times[worker];
        ASSERT_EQ(times.size(), expected.size());
        for (std::size_t i = 0; i < times.size(); ++i) {
          if (times[i] == 0) continue;
          EXPECT_EQ(times[i], expected[i]);
          seen[i] = times[i];
        }
      }
      EXPECT_EQ(seen, expected);
    }
  }
}

TEST_P(LoopOver, LossesAreTheMeanOverTheWindow) {
  for (const StepReport& report : run_.reports[0]) {
    const double first = static_cast<double>(report.step - 1) * GetParam().window;
    EXPECT_DOUBLE_EQ(report.loss, first + (GetParam().window - 1) / 2.0);
  }
}

TEST_P(LoopOver, BlankMinibatchesAreNotRunAndCountTheirLoss) {
  const int window = GetParam().window;
  TrainOptions options = options_;
  options.blanks = {{Position{0}, 3}, {Position{2 * window - 1}, 5}};  // the first of all, the last of window 1
  Outcome run;
  run_all(options, run);
  for (const auto& result : run.results) ASSERT_TRUE(result.ok()) << result.error();
  for (int worker = 0; worker < static_cast<int>(run.results.size()); ++worker) {
    for (const Sighting& seen : run.sightings.of(worker)) {
      EXPECT_NE(seen.position, 0);
      EXPECT_NE(seen.position, 2 * window - 1);
    }
  }
  const double whole = run_.reports[0][2].gradient_norm;
  const double change[] = {3.0 - 0, 5.0 - (2 * window - 1), 0, 0, 0};
  for (int step = 0; step < kSteps; ++step) {
    const double share = (window - (step < 2 ? 1.0 : 0.0)) / window;
    EXPECT_DOUBLE_EQ(run.reports[0][step].gradient_norm, whole * share) << "step " << step;
    EXPECT_DOUBLE_EQ(run.reports[0][step].loss, run_.reports[0][step].loss + change[step] / window) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LoopOver,
    ::testing::Values(Shape{ScheduleKind::kOneFOneB, 1, 1, 3}, Shape{ScheduleKind::kOneFOneB, 1, 2, 4},
                      Shape{ScheduleKind::kOneFOneB, 3, 1, 5}, Shape{ScheduleKind::kOneFOneB, 3, 2, 7},
                      Shape{ScheduleKind::kGpipe, 3, 1, 4}, Shape{ScheduleKind::kInterleaved, 2, 2, 6},
                      Shape{ScheduleKind::kInterleaved, 1, 1, 2}, Shape{ScheduleKind::kTwoDirections, 4, 1, 8},
                      Shape{ScheduleKind::kTwoDirections, 4, 3, 13}, Shape{ScheduleKind::kAmdpSync, 4, 1, 8},
                      Shape{ScheduleKind::kAmdp, 2, 1, 2}, Shape{ScheduleKind::kAmdp, 2, 3, 7},
                      Shape{ScheduleKind::kAmdp, 4, 1, 4}, Shape{ScheduleKind::kAmdp, 4, 1, 5},
                      Shape{ScheduleKind::kAmdp, 4, 2, 16}, Shape{ScheduleKind::kAmdp, 8, 1, 8},
                      Shape{ScheduleKind::kAmdp, 8, 1, 32}, Shape{ScheduleKind::kAmdp, 12, 1, 24}),
    name_of);

TEST(Loop, EvaluatesOnTheWholePipelineAndGoesOn) {
  TrainOptions options = counting_options(ScheduleKind::kAmdp, 4, 2, 8, 6);
  options.evaluate_every = 2;
  options.evaluate_minibatches = 11;
  Outcome run;
  run_all(options, run);
  for (const auto& result : run.results) {
    ASSERT_TRUE(result.ok()) << result.error();
    EXPECT_EQ(result->steps, 6);
    EXPECT_EQ(result->validation_loss, 5.0);  // the mean of 0 … 10
  }
  EXPECT_THAT(run.validation, ::testing::ElementsAre(5.0, 5.0, 5.0));
}

TEST(Loop, StopsEverywhereAtTheSameWindowWhenOneWorkerIsAsked) {
  for (const ScheduleKind kind : {ScheduleKind::kAmdp, ScheduleKind::kOneFOneB}) {
    const TrainOptions options = counting_options(kind, 4, 1, 4, 1'000'000);
    const std::atomic<int> stop_at_step = 3;
    Outcome run;
    run_all(options, run, &stop_at_step);
    for (const auto& result : run.results) {
      ASSERT_TRUE(result.ok()) << result.error();
      // Asked at the fourth update; an asynchronous pipeline has the fifth window in flight by then.
      EXPECT_EQ(result->steps, kind == ScheduleKind::kAmdp ? 5 : 4);
    }
  }
}

// Invariant 20: with a stash no gradient mixes two versions.
TEST(Loop, StashGivesEveryBackwardTheWeightsOfItsForward) {
  for (const bool stash : {true, false}) {
    TrainOptions options = counting_options(ScheduleKind::kAmdp, 4, 1, 8, 4);
    options.stash = stash;
    Outcome run;
    run_all(options, run);
    int mixed = 0;
    for (int worker = 0; worker < 4; ++worker) {
      ASSERT_TRUE(run.results[worker].ok()) << run.results[worker].error();
      std::map<std::pair<int, std::int64_t>, float> forward_weight;
      for (const Sighting& sighting : run.sightings.of(worker)) {
        const auto [forward, first] = forward_weight.try_emplace({sighting.stage, sighting.position}, sighting.weight);
        if (forward->second != sighting.weight) ++mixed;
      }
    }
    // Without it D (D - 1) pairs in each window but the first.
    EXPECT_EQ(mixed, stash ? 0 : 3 * 4 * 3);
  }
}

TEST(Loop, RefusesWhatCannotRun) {
  const auto refused = [](TrainOptions options) {
    auto transports = make_thread_transports(2);
    const auto data = make_no_data();
    TrainHooks hooks;
    hooks.now = now;
    const auto result = train(options, *data, *transports[0], hooks);
    EXPECT_FALSE(result.ok());
    return result.ok() ? std::string() : result.error().message;
  };
  TrainOptions good = counting_options(ScheduleKind::kAmdp, 2, 1, 2, 1);
  TrainOptions wrong_workers = counting_options(ScheduleKind::kOneFOneB, 3, 1, 3, 1);
  EXPECT_THAT(refused(wrong_workers), ::testing::HasSubstr("3 workers, but there are 2"));
  TrainOptions wrong_cuts = good;
  wrong_cuts.cuts = {0, 0, good.model.blocks()};
  EXPECT_THAT(refused(wrong_cuts), ::testing::HasSubstr("cuts"));
  TrainOptions small_window = good;
  small_window.schedule.window = 1;
  EXPECT_THAT(refused(small_window), ::testing::HasSubstr("too small"));
  TrainOptions baseline = good;
  baseline.schedule.kind = ScheduleKind::kPipedream2bw;
  EXPECT_THAT(refused(baseline), ::testing::HasSubstr("not trained"));
}

}  // namespace
}  // namespace everstep::trainer
