#pragma once

#include <memory>
#include <ostream>

#include "scheduler/schedule.h"
#include "trainer/loop/train_loop.h"

namespace everstep::trainer {

// Who runs what, as far as tests vary it.
struct TestPlan {
  scheduler::ScheduleKind kind = scheduler::ScheduleKind::kAmdp;
  int depth = 1;
  int width = 1;
  int window = 16;
  int preload = 2;
  int pipelines = 0;  // in clockwork; 0: as many as usual
  int lag = 0;
  int provisional = 0;
};

constexpr TestPlan provisional(TestPlan plan, int left_out) {
  plan.provisional = left_out;
  return plan;
}

constexpr TestPlan clockwork(int depth, int pipelines, int width, int window, int lag = 0) {
  return {scheduler::ScheduleKind::kClockwork, depth, width, window, 2, pipelines, lag, 0};
}
constexpr TestPlan clockwork_sync(int depth, int pipelines, int width, int window) {
  return {scheduler::ScheduleKind::kClockworkSync, depth, width, window, 2, pipelines, 0, 0};
}

// A name for a parametrised test: "amdp_D4_W2_M16_preload2" or "clockwork_D4_W2_M16_P2_lag0".
std::string name_of(const TestPlan& plan);
std::ostream& operator<<(std::ostream& out, const TestPlan& plan);

// Reproducible training of a tiny model, with dropout, warm-up and a gradient that is always clipped.
TrainOptions tiny_training(scheduler::ModelFamily family, int layers = 8);

// The same under a plan, the blocks cut evenly.
TrainOptions under_plan(TrainOptions options, const TestPlan& plan);

// The text that the repository ships, as this model sees it.
std::unique_ptr<DataSource> shipped_corpus(const ModelConfig& model);

}  // namespace everstep::trainer
