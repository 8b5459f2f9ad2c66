#include "trainer/update/gradient_reduction.h"

#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "trainer/threads/thread_transport.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

using scheduler::Schedule;
using scheduler::ScheduleKind;

constexpr int kWindows = 3;
constexpr std::chrono::seconds kPatience{20};

struct Shape {
  ScheduleKind kind;
  int depth;
  int width;
};

Schedule schedule_of(const Shape& shape) {
  scheduler::ScheduleRequest request;
  request.kind = shape.kind;
  request.depth = shape.depth;
  request.width = shape.width;
  request.window = shape.depth * shape.width;
  return scheduler::make_schedule(request).value();
}

// What a replica brings for an element: tells worker, stage, window and element apart, also in a sum.
std::int64_t addend(int worker, int stage, int window, std::int64_t element) {
  return (std::int64_t{1} << (2 * worker)) * (stage + 1) * (window + 1) + element;
}

class ReductionOver : public testing::TestWithParam<Shape> {
 protected:
  ReductionOver() {
    ModelConfig model;
    // Large enough for a stage to travel in more than one piece.
    model.shape = {"test", scheduler::ModelFamily::kGpt, schedule_.placement.stages(), 16, 1, 4, 9000};
    for (int stage = 0; stage < schedule_.placement.stages(); ++stage) {
      const bool last = stage + 1 == schedule_.placement.stages();
      layouts_.push_back(layout_of(model, stage, last ? model.blocks() : stage + 1));
    }
  }

  std::int64_t sum_over_replicas(int stage, int window, std::int64_t element) const {
    std::int64_t sum = 0;
    for (int group = 0; group < schedule_.request.width; ++group) {
      for (const int device : schedule_.placement.replicas_of(stage)) {
        sum += addend(group * schedule_.depth() + device, stage, window, element);
      }
    }
    return sum;
  }

  // At the owners, once all is done: the two tied parameters, in one stage or in two, both have the sum of both.
  std::int64_t expected(int stage, int window, std::int64_t element) const {
    const std::optional<std::int64_t> inside = inside_tied(stage, element);
    if (!inside) return sum_over_replicas(stage, window, element);
    std::int64_t sum = 0;
    for (int other = 0; other < schedule_.placement.stages(); ++other) {
      for (const StageLayout::Entry& entry : layouts_[other].entries) {
        if (entry.parameter.tied) sum += sum_over_replicas(other, window, entry.offset + *inside);
      }
    }
    return sum;
  }

  std::optional<std::int64_t> inside_tied(int stage, std::int64_t element) const {
    for (const StageLayout::Entry& entry : layouts_[stage].entries) {
      const std::int64_t inside = element - entry.offset;
      if (entry.parameter.tied && inside >= 0 && inside < entry.parameter.elements()) return inside;
    }
    return std::nullopt;
  }

  Buffer sums_of(int worker, int stage, int window) const {
    const Buffer sums = allocate_scratch(layouts_[stage].elements * sizeof(std::int64_t));
    for (std::int64_t i = 0; i < layouts_[stage].elements; ++i) {
      sums.as<std::int64_t>()[i] = addend(worker, stage, window, i);
    }
    return sums;
  }

  // A window's gradients as they stood at a capture inside it, then those of its end.
  void reduce(GradientReduction& reduction, int worker, int window) const {
    const int device = schedule_.device_of(worker);
    const std::vector<int>& stages = schedule_.placement.stages_on(device);
    std::vector<Buffer> captured;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      captured.push_back(sums_of(worker, *stage, window + kWindows));
      reduction.capture(window, 0, *stage, captured.back());
    }
    std::vector<Buffer> sums;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      sums.push_back(sums_of(worker, *stage, window));
      reduction.start(window, *stage, layouts_[*stage], sums.back());
      ASSERT_TRUE(reduction.advance().ok());
    }
    const Status status = reduction.finish(kPatience);
    ASSERT_TRUE(status.ok()) << status.error();
    ASSERT_FALSE(reduction.is_capturing());
    expect_captures_at_roots(worker, window, captured);
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      if (schedule_.placement.owner_of(*stage) != device) continue;
      const std::span<std::int64_t> found = sums[stage - stages.rbegin()].as<std::int64_t>();
      for (std::int64_t i = 0; i < layouts_[*stage].elements; ++i) {
        ASSERT_EQ(found[i], expected(*stage, window, i)) << "worker " << worker << ", stage " << *stage << ", " << i;
      }
    }
  }

  // Tied parameters stay apart in a capture.
  void expect_captures_at_roots(int worker, int window, const std::vector<Buffer>& captured) const {
    const int device = schedule_.device_of(worker);
    const std::vector<int>& stages = schedule_.placement.stages_on(device);
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      const bool is_root = schedule_.group_of(worker) == root_group_of(schedule_, *stage);
      if (schedule_.placement.owner_of(*stage) != device || !is_root) continue;
      const std::span<std::int64_t> found = captured[stage - stages.rbegin()].as<std::int64_t>();
      for (std::int64_t i = 0; i < layouts_[*stage].elements; ++i) {
        ASSERT_EQ(found[i], sum_over_replicas(*stage, window + kWindows, i)) << "stage " << *stage << ", " << i;
      }
    }
  }

  Schedule schedule_ = schedule_of(GetParam());
  std::vector<StageLayout> layouts_;
};

TEST_P(ReductionOver, GivesEveryOwnerTheSumOverAllReplicasAndTheRootThatOfACapture) {
  const int workers = static_cast<int>(schedule_.workers.size());
  const auto transports = make_thread_transports(workers, {std::chrono::microseconds(300), 3});
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      GradientReduction reduction(*transports[worker], schedule_, Accumulation::kFixedPoint, {});
      for (int window = 0; window < kWindows; ++window) reduce(reduction, worker, window);
      EXPECT_TRUE(transports[worker]->close(kPatience).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Reduction, KnowsWhetherItHasToWaitForOthers) {
  const Schedule schedule = schedule_of({ScheduleKind::kOneFOneB, 1, 2});
  ModelConfig model;
  model.shape = {"test", scheduler::ModelFamily::kGpt, 1, 4, 1, 4, 9};
  const StageLayout layout = layout_of(model, 0, model.blocks());
  const Buffer sums[] = {allocate_zeroed(layout.elements * sizeof(float)),
                         allocate_zeroed(layout.elements * sizeof(float))};
  const auto transports = make_thread_transports(2);
  GradientReduction root(*transports[0], schedule, Accumulation::kFloat, {});
  GradientReduction other(*transports[1], schedule, Accumulation::kFloat, {});
  EXPECT_TRUE(root.has_all_sums());
  root.start(0, 0, layout, sums[0]);
  ASSERT_TRUE(root.advance().ok());
  EXPECT_FALSE(root.has_all_sums());
  other.start(0, 0, layout, sums[1]);
  ASSERT_TRUE(other.advance().ok());
  EXPECT_TRUE(other.has_all_sums());  // the total is finish()'s affair
  ASSERT_TRUE(root.advance().ok());
  EXPECT_TRUE(root.has_all_sums());
  EXPECT_TRUE(root.finish(kPatience).ok());
  EXPECT_TRUE(other.finish(kPatience).ok());
}

INSTANTIATE_TEST_SUITE_P(Threads, ReductionOver,
                         testing::Values(Shape{ScheduleKind::kOneFOneB, 1, 1}, Shape{ScheduleKind::kOneFOneB, 1, 3},
                                         Shape{ScheduleKind::kOneFOneB, 3, 2}, Shape{ScheduleKind::kInterleaved, 2, 1},
                                         Shape{ScheduleKind::kTwoDirections, 4, 1}, Shape{ScheduleKind::kAmdp, 2, 2},
                                         Shape{ScheduleKind::kAmdp, 4, 2}, Shape{ScheduleKind::kAmdp, 8, 2}),
                         [](const auto& test) {
                           const auto depth = std::to_string(test.param.depth);
                           return "Plan" + std::to_string(test.index) + "_D" + depth + "_W" +
                                  std::to_string(test.param.width);
                         });

}  // namespace
}  // namespace everstep::trainer
