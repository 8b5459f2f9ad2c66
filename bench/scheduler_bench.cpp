#include <benchmark/benchmark.h>

#include "scheduler/model_shape.h"
#include "scheduler/planner.h"
#include "scheduler/schedule.h"
#include "scheduler/timeline.h"
#include "scheduler/validate.h"

// The scheduler's figures. A plan is made at every membership change, a schedule at every generation: both must be
// small beside the change itself. Limits (docs/planning.md has figures): plan for 64 workers 50 ms, for 1,024 workers 1
// s; schedule at D=64, T=4 10 ms; validate the same 50 ms.
namespace everstep::scheduler {
namespace {

std::vector<WorkerInfo> workers(int count) {
  std::vector<WorkerInfo> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({WorkerId{{0, static_cast<std::uint64_t>(i) + 1}}, "host-" + std::to_string(i / 8)});
  }
  return all;
}

// The paper's GPT has 48 transformer blocks; with embedding and head there are 50.
PlanOptions wishes(int count, bool clockwork) {
  PlanOptions options;
  options.clockwork = clockwork;
  if (clockwork) options.provisional = ProvisionalWish::kAuto;  // as everstep train asks for it
  options.window = 4 * count;
  options.hardware.memory_bytes = std::int64_t{80} << 30;
  return options;
}

void plan_for_workers(benchmark::State& state, bool clockwork) {
  const ModelProfile profile = estimate_profile(*find_model("gpt-1.56b"));
  const auto count = static_cast<int>(state.range(0));
  const auto crew = workers(count);
  for (auto _ : state) benchmark::DoNotOptimize(plan(profile, crew, wishes(count, clockwork)));
}
BENCHMARK_CAPTURE(plan_for_workers, without_clockwork, false)
    ->Arg(8)
    ->Arg(64)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_for_workers, with_clockwork, true)->Arg(8)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

// The usual case: somebody left, and a plan is running.
void replan_after_a_loss(benchmark::State& state, bool clockwork) {
  const ModelProfile profile = estimate_profile(*find_model("gpt-1.56b"));
  const auto count = static_cast<int>(state.range(0));
  auto crew = workers(count);
  PlanOptions options = wishes(count, clockwork);
  options.previous = plan(profile, crew, options)->plan;
  crew.erase(crew.begin() + 3);
  for (auto _ : state) benchmark::DoNotOptimize(plan(profile, crew, options));
}
BENCHMARK_CAPTURE(replan_after_a_loss, without_clockwork, false)
    ->Arg(8)
    ->Arg(64)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replan_after_a_loss, with_clockwork, true)->Arg(8)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

ScheduleRequest four_rounds(int depth) {
  ScheduleRequest request;
  request.depth = depth;
  request.window = 4 * depth;
  return request;
}

void make_amdp_schedule(benchmark::State& state) {
  const ScheduleRequest request = four_rounds(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(make_schedule(request));
}
BENCHMARK(make_amdp_schedule)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void validate_amdp_schedule(benchmark::State& state) {
  const auto schedule = make_schedule(four_rounds(static_cast<int>(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(validate(*schedule).ok());
}
BENCHMARK(validate_amdp_schedule)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void time_amdp_schedule(benchmark::State& state) {
  const int depth = static_cast<int>(state.range(0));
  const auto schedule = make_schedule(four_rounds(depth));
  const TimingModel model = TimingModel::uniform(depth);
  for (auto _ : state) benchmark::DoNotOptimize(time_schedule(*schedule, model));
}
BENCHMARK(time_amdp_schedule)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace everstep::scheduler
