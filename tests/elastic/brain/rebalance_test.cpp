#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/brain/speed_book.h"
#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using scheduler::Plan;
using scheduler::WorkerInfo;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using How = TrainingEnded::How;

constexpr int kInterval = 30'000;  // ms between changes for joins

double slowness_in(const std::vector<WorkerInfo>& workers, const WorkerId& id) {
  const auto found = std::ranges::find(workers, id, &WorkerInfo::id);
  return found == workers.end() ? 1 : found->slowness;
}

// As wide as there are workers that are less than three times slower; the others are spares.
Result<Plan> plan_without_the_slowest(const std::vector<WorkerInfo>& workers, const Plan* previous) {
  std::vector<WorkerInfo> fast = workers;
  std::erase_if(fast, [](const WorkerInfo& worker) { return worker.slowness >= 3; });
  Result<Plan> plan = wide_plan(fast, previous);
  for (const WorkerInfo& worker : workers) {
    if (worker.slowness >= 3) plan->spares.push_back(worker.id);
  }
  return plan;
}

// All wait for the slowest.
Tick time_with(const Plan& plan, const std::vector<WorkerInfo>& workers) {
  double slowest = 1;
  for (const WorkerId& id : plan.workers) slowest = std::max(slowest, slowness_in(workers, id));
  return static_cast<Tick>(6000 * slowest / plan.width);
}

// Three workers train in generation 1; the third is slower, or not.
class Rebalancing : public testing::Test {
 protected:
  Rebalancing() {
    cluster.plan = plan_without_the_slowest;
    cluster.window_time = time_with;
    cluster.rebalances = true;
  }

  void begin() {
    for (const int number : {1, 2, 3}) cluster.add(number);
    cluster.run_until_quiet(3000);
    cluster.run_until_quiet();
    ASSERT_EQ(number(), 1);
  }

  std::int64_t number() { return cluster.generation()->roster.attempt.generation.value; }
  const Plan& plan() { return (generation_ = cluster.generation())->roster.plan; }

  ProgressRecord measured(std::vector<int> slowness_percent) {
    ProgressRecord progress;
    progress.step = 100;
    progress.steps = 10'000;
    progress.generation = cluster.generation()->roster.attempt.generation;
    progress.updates = 8;
    progress.update_us = 500'000;
    progress.slowness_percent = std::move(slowness_percent);
    return progress;
  }
  void show(const ProgressRecord& progress) {
    cluster.write({{}, {put(cluster.keys().progress(), to_text(progress))}});
    cluster.run_until_quiet(10);
  }

  void leave_the_third_out() {
    begin();
    cluster.run_until_quiet(kInterval);
    show(measured({100, 103, 410}));
    ASSERT_EQ(number(), 2);
    cluster.end_training(3, How::kHandedOver, {});
    cluster.run_until_quiet(10);
  }

  SmallCluster cluster;

 private:
  std::optional<GenerationRecord> generation_;
};

TEST_F(Rebalancing, PlansAroundAWorkerThatIsSlowAndKeepsIt) {
  leave_the_third_out();
  EXPECT_THAT(plan().workers, ElementsAre(worker(1), worker(2)));
  EXPECT_THAT(plan().spares, ElementsAre(worker(3)));
  EXPECT_TRUE(cluster.has(cluster.keys().member(worker(3))));
  EXPECT_THAT(cluster.effects_of<Rejoin>(3), IsEmpty());
  EXPECT_EQ(cluster.generation()->origin.kind, Origin::Kind::kMemory) << "nothing is redone";
  EXPECT_EQ(cluster.generation()->reason, "worker-3 is 4.0 times slower and left out: 167 % faster");
}

TEST_F(Rebalancing, IsNotDoneUnasked) {
  cluster.rebalances = false;
  begin();
  cluster.run_until_quiet(kInterval);
  show(measured({100, 100, 900}));
  cluster.run_until_quiet(10 * kInterval);
  EXPECT_EQ(number(), 1);
}

TEST_F(Rebalancing, WaitsForTheIntervalBetweenChanges) {
  begin();
  show(measured({100, 100, 400}));
  EXPECT_EQ(number(), 1);
  cluster.run_until_quiet(kInterval);
  EXPECT_EQ(number(), 2);
}

TEST_F(Rebalancing, WaitsForSeveralUpdatesOfThisGeneration) {
  begin();
  cluster.run_until_quiet(kInterval);
  ProgressRecord few = measured({100, 100, 400});
  few.updates = 7;
  show(few);
  EXPECT_EQ(number(), 1);
  ProgressRecord other = measured({100, 100, 400});
  other.generation = {9};
  show(other);
  EXPECT_EQ(number(), 1);
  show(measured({100, 100, 400}));
  EXPECT_EQ(number(), 2);
}

TEST_F(Rebalancing, IsNotDoneWhereItDoesNotPay) {
  begin();
  cluster.run_until_quiet(kInterval);
  show(measured({100, 100, 270}));  // stays in the plan, which is no other then
  EXPECT_EQ(number(), 1);
  ProgressRecord near_the_end = measured({100, 100, 400});
  near_the_end.steps = near_the_end.step + 10;  // 5 s are left, less than a switch is taken to cost
  show(near_the_end);
  cluster.run_until_quiet(kInterval);
  EXPECT_EQ(number(), 1);
}

TEST_F(Rebalancing, ReckonsWithWhatTheLastSwitchCost) {
  begin();
  cluster.run_until_quiet(kInterval);
  ProgressRecord progress = measured({100, 100, 400});
  progress.steps = progress.step + 60;  // 30 s, of which 62 % would be saved
  progress.switch_ms = 10'000;
  show(progress);
  EXPECT_EQ(number(), 1);
  progress.switch_ms = 1'000;
  progress.slowness_percent = {100, 100, 600};
  show(progress);
  EXPECT_EQ(number(), 2);
}

TEST_F(Rebalancing, TriesASpareAgainAfterAWhileAndThenLessAndLessOften) {
  leave_the_third_out();
  show(measured({100, 100}));
  cluster.run_until_quiet(19 * kInterval);
  EXPECT_EQ(number(), 2);
  cluster.run_until_quiet(kInterval);
  ASSERT_EQ(number(), 3);
  EXPECT_THAT(plan().workers, SizeIs(3));
  EXPECT_THAT(cluster.generation()->reason, HasSubstr("worker-3 is no slower any more, or tried again: "));
  cluster.run_until_quiet(kInterval);
  show(measured({100, 100, 400}));
  ASSERT_EQ(number(), 4) << "as slow as ever";
  cluster.end_training(3, How::kHandedOver, {});
  show(measured({100, 100}));
  cluster.run_until_quiet(39 * kInterval);
  EXPECT_EQ(number(), 4);
  cluster.run_until_quiet(kInterval);
  EXPECT_EQ(number(), 5);
}

TEST_F(Rebalancing, OrdinaryChangesKnowTheSpeedsToo) {
  leave_the_third_out();
  cluster.add(4);
  cluster.run_until_quiet(2 * kInterval);
  ASSERT_EQ(number(), 3);
  EXPECT_THAT(plan().workers, ElementsAre(worker(1), worker(2), worker(4)));
  EXPECT_THAT(plan().spares, ElementsAre(worker(3)));
  EXPECT_EQ(cluster.generation()->reason, "worker-4 joined");
}

TEST_F(Rebalancing, ALossIsMadeUpForByTheSlowOneOnlyIfThatIsFaster) {
  leave_the_third_out();
  cluster.kill(2);
  cluster.end_training(1, How::kBroken, {}, worker(2));
  cluster.run_until_quiet(60);
  cluster.run_until_quiet(3000);
  ASSERT_EQ(number(), 3);
  EXPECT_THAT(plan().workers, ElementsAre(worker(1)));
}

// ---- what is believed ----

class Believing : public testing::Test {
 protected:
  Believing() {
    seen_.generation.emplace().roster.plan.workers = {worker(1), worker(2)};
    for (const int number : {1, 2, 3}) seen_.members[worker(number)] = {};
  }

  double after(int percent) {
    ProgressRecord& progress = seen_.progress.emplace();
    progress.updates = 8;
    progress.slowness_percent = {100, percent};
    book_.look(seen_, 0);
    return book_.slowness(worker(2));
  }

  Situation seen_;
  SpeedBook book_{kTicksPerSecond};
};

TEST_F(Believing, ChangesOnlyWhenSomethingClearlyDifferentIsMeasured) {
  EXPECT_EQ(after(130), 1);
  EXPECT_EQ(after(149), 1);
  EXPECT_EQ(after(310), 3);
  for (const int percent : {260, 350, 300, 370, 245}) EXPECT_EQ(after(percent), 3) << percent;
  EXPECT_EQ(after(500), 5);
  EXPECT_EQ(after(0), 5) << "nothing is measured, so nothing new is known";
  EXPECT_EQ(after(130), 1);
  EXPECT_EQ(after(100'000), 100) << "no plan can be made for less";
}

TEST_F(Believing, EndsWithTheWorker) {
  EXPECT_EQ(after(300), 3);
  EXPECT_THAT(book_.slow(), SizeIs(1));
  seen_.members.erase(worker(2));
  seen_.progress.reset();
  book_.look(seen_, 0);
  EXPECT_THAT(book_.slow(), IsEmpty());
}

}  // namespace
}  // namespace everstep::elastic::test
