// What outlives a run on the device lies on the host, with the CPU's bits: copies that guards keep, and the state that
// the next generation starts from.
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"
#include "trainer/recovery/owner_state.h"
#include "trainer/recovery/state_transfer.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// ---- copies ----

std::string difference_between(const std::vector<StagedStage>& expected, const std::vector<StagedStage>& others) {
  if (expected.size() != others.size()) return "other stages";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (const auto tensor : kOwnerState) {
      const Buffer& one = expected[i].state.*tensor;
      const Buffer& other = others[i].state.*tensor;
      if (one.on_device() || other.on_device()) return "a copy on the device";
      if (one.size != other.size) return "other sizes";
      if (!one.empty() && std::memcmp(one.data, other.data, one.size) != 0) {
        return "other bytes of stage " + std::to_string(expected[i].stage);
      }
    }
  }
  return "";
}

// Of the versions that both have.
std::string difference_between(const StateCopies& expected, const StateCopies& other, int& compared) {
  for (const StateCopies::CopiedVersion& version : expected.versions()) {
    const auto one = expected.at(version.version);
    const auto two = other.at(version.version);
    if (!two || one->complete != two->complete) continue;
    ++compared;
    if (one->resume.applied != two->resume.applied) return "another place to go on from";
    std::string difference = one->complete.owned ? difference_between(one->owned, two->owned) : "";
    if (one->complete.guarded) difference += difference_between(one->guarded, two->guarded);
    if (!difference.empty()) return difference;
  }
  return "";
}

TrainOptions guarded(const TestPlan& plan) {
  TrainOptions options = under_plan(tiny_training(ModelFamily::kGpt, 3), plan);
  options.steps = 3;
  options.model.precision = Precision::kBf16;
  const int stages = static_cast<int>(options.cuts.size()) - 1;
  const auto placement = scheduler::Placement::make(plan.kind, plan.depth).value();
  for (int stage = 0; stage < stages; ++stage) {
    options.guards.push_back({(placement.owner_of(stage) + 1) % plan.depth});
  }
  return options;
}

// `dies`: the last worker gives up when it has made its second update.
std::vector<StateCopies> copies_after(const TrainOptions& options, Where where, bool dies) {
  std::vector<StateCopies> copies(static_cast<std::size_t>(options.schedule.depth * options.schedule.width));
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    hooks.copies = &copies[static_cast<std::size_t>(worker)];
  };
  if (dies) {
    changes.program = [last = std::ssize(copies) - 1](const TrainOptions& given, const DataSource& data,
                                                      Transport& transport, const TrainHooks& hooks) {
      TrainHooks mortal = hooks;
      mortal.on_step = [&](const StepReport& report) {
        if (transport.worker() == last && report.step == 2) transport.abort({ErrorCode::kCancelled, "it dies", ""});
      };
      return train(given, data, transport, mortal);
    };
  }
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data, there(where, changes));
  EXPECT_EQ(runs.ok(), !dies) << (runs.ok() ? "" : runs.error().line());
  return copies;
}

TEST(CopiesOnDevice, AreTheCpusWhenARunHasEnded) {
  forget_mistakes();
  for (const TestPlan& plan : {TestPlan{ScheduleKind::kOneFOneB, 3, 1, 6}, TestPlan{ScheduleKind::kAmdp, 4, 1, 8}}) {
    const TrainOptions options = guarded(plan);
    const auto expected = copies_after(options, Where::kCpu, false);
    const auto copies = copies_after(options, Where::kDevice, false);
    int compared = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(difference_between(expected[i], copies[i], compared), "");
    EXPECT_EQ(compared, 2 * std::ssize(copies));
  }
  EXPECT_EQ(race_report(), "");
}

TEST(CopiesOnDevice, AreTheCpusWhenAWorkerHasDied) {
  forget_mistakes();
  const TrainOptions options = guarded({ScheduleKind::kOneFOneB, 3, 1, 6});
  const auto expected = copies_after(options, Where::kCpu, true);
  const auto copies = copies_after(options, Where::kDevice, true);
  int compared = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(difference_between(expected[i], copies[i], compared), "");
  EXPECT_GE(compared, std::ssize(copies)) << "all have the version that the last exchange proved";
  EXPECT_EQ(race_report(), "");
}

// ---- handover ----

// After a super-round that everybody knows from the beginning.
class StopAfter final : public StopRequests {
 public:
  explicit StopAfter(std::int64_t round) : round_(round) {}
  WindowStop at_window_end() override { return WindowStop::kNo; }
  bool start_round(std::int64_t round, std::chrono::milliseconds) override { return round <= round_; }
  std::optional<std::int64_t> certain_round() override { return round_; }
  std::optional<std::int64_t> last_round() override { return round_; }

 private:
  std::int64_t round_;
};

// Trains under `before` to a stop, moves the state, and ends under `after`.
Result<std::vector<WorkerRun>> handed_over(const TestPlan& before, const TestPlan& after, std::int64_t stop,
                                           std::pair<Where, Where> where) {
  const TrainOptions options = tiny_training(ModelFamily::kGpt, 3);
  const TrainOptions first = under_plan(options, before);
  const auto data = shipped_corpus(options.model);
  std::vector<EndState> states(static_cast<std::size_t>(before.depth * before.width));
  StopAfter gate(stop);
  RunChanges stopping;
  stopping.change_hooks = [&](int, TrainHooks& hooks) { hooks.stops = &gate; };
  stopping.program = [&](const TrainOptions& given, const DataSource& source, Transport& transport,
                         const TrainHooks& hooks) {
    auto result = train(given, source, transport, hooks);
    if (result) states[static_cast<std::size_t>(transport.worker())] = result->state;
    return result;
  };
  const auto began = run_in_threads(first, *data, there(where.first, stopping));
  if (!began) return began.error();

  TrainOptions second = under_plan(options, after);
  second.generation = {2};
  TransferJob job;
  job.model = options.model;
  job.accumulation = options.accumulation;
  job.lineage = options.lineage;
  job.generation = second.generation;
  job.position = states[0].resume.position;
  job.change.before = {first.schedule, first.cuts};
  job.change.after = {second.schedule, second.cuts};
  job.change.inside_window = job.position.value % before.window != 0;
  for (int worker = 0; worker < std::ssize(states); ++worker) job.change.holders.push_back(worker);
  const int workers = std::max(job.change.before.workers(), job.change.after.workers());
  std::vector<Result<MovedState>> moved(static_cast<std::size_t>(workers), Error{});
  auto transports = make_thread_transports(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const auto place = static_cast<std::size_t>(worker);
      moved[place] = move_state(*transports[place], job, worker < std::ssize(states) ? &states[place] : nullptr);
      (void)transports[place]->close(std::chrono::seconds(20));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : moved) {
    if (!each) return each.error();
  }
  second.resume = moved[0]->resume;
  RunChanges going_on;
  going_on.change_hooks = [&](int worker, TrainHooks& hooks) {
    hooks.restore = [&, worker](const StageLayout& layout, const StageState& state) {
      return restore_from(*moved[static_cast<std::size_t>(worker)], layout, state);
    };
  };
  return run_in_threads(second, *data, there(where.second, going_on));
}

TEST(HandoverOnDevice, GoesOnWithTheCpusBits) {
  forget_mistakes();
  const TestPlan before{ScheduleKind::kOneFOneB, 3, 1, 6};
  const TestPlan after{ScheduleKind::kAmdp, 2, 1, 6};
  for (const std::int64_t stop : {1, 2}) {  // at a window's end, and inside the next one
    const auto expected = handed_over(before, after, stop, {Where::kCpu, Where::kCpu});
    EXPECT_TRUE(expected.ok());
    for (const auto& where : {std::pair{Where::kDevice, Where::kDevice}, std::pair{Where::kDevice, Where::kCpu},
                              std::pair{Where::kCpu, Where::kDevice}}) {
      EXPECT_EQ(trainer::difference_between(expected, handed_over(before, after, stop, where)), "") << stop;
    }
  }
  EXPECT_EQ(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
