#include "elastic/brain/anomaly_trial.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

constexpr int kWindow = 8;

AnomalyReport seen_at(std::int64_t minibatch) { return {12, Position{minibatch}, worker(2), true, 0}; }
const AnomalyReport kUnseen{12, {}, {}, false, 0};
const AnomalyReport kExploded{12, {}, {}, false, 30.5};

TEST(AnomalyTrial, RunsAWindowAgainAsItWas) {
  for (const AnomalyReport& report : {seen_at(100), kUnseen, kExploded}) {
    AnomalyReport earlier = report;
    earlier.window = 11;
    for (const auto& before : {std::optional<AnomalyTrial>(), std::optional<AnomalyTrial>({earlier, 2, false, true})}) {
      const TrialStep step = next_step(before, report);
      EXPECT_EQ(step.trial, (AnomalyTrial{report, 1, false, false}));
      EXPECT_EQ(step.left_out, std::nullopt);
      EXPECT_EQ(step.guilty, std::nullopt);
    }
  }
}

struct Row {
  AnomalyReport first;
  bool convicts;
  AnomalyReport second;
  std::optional<Position> left_out;
  std::optional<WorkerId> guilty;
};

TEST(AnomalyTrial, BlamesDataOrWorkerOrNobodyAfterTheSecondTime) {
  const std::vector<Row> table{
      {seen_at(100), true, seen_at(100), Position{100}, {}},   // the data
      {seen_at(100), false, seen_at(100), Position{100}, {}},  // also under another plan
      {seen_at(100), true, seen_at(101), {}, worker(2)},       // 100 passed on the same bits
      {seen_at(100), false, seen_at(101), {}, {}},             // … on others
      {seen_at(100), true, seen_at(99), {}, {}},               // 100 may have failed again
      {seen_at(100), true, kUnseen, {}, worker(2)},
      {seen_at(100), true, kExploded, {}, {}},
      {kUnseen, false, kUnseen, {}, {}},
      {kUnseen, false, seen_at(100), {}, {}},
      {kExploded, false, kExploded, {}, {}},
  };
  for (const Row& row : table) {
    const TrialStep step = next_step(AnomalyTrial{row.first, 1, row.convicts, false}, row.second);
    EXPECT_EQ(step.left_out, row.left_out) << step.what;
    EXPECT_EQ(step.guilty, row.guilty) << step.what;
    const bool is_comparable = row.first.minibatch.has_value() == row.second.minibatch.has_value();
    EXPECT_EQ(step.trial.skips, is_comparable) << "then a third failure is skipped";
    EXPECT_EQ(step.trial.report, row.second.minibatch || is_comparable ? row.second : row.first) << "what was seen";
    EXPECT_EQ(step.trial.failures, 2);
  }
}

// A stop inside a window cuts it in two, and nobody who sees its end has seen all of it.
TEST(AnomalyTrial, LeavesTheMinibatchOutThatWasSeenBeforeAndAfterAFailureThatNobodySaw) {
  for (const bool unseen_first : {true, false}) {
    const TrialStep first = next_step({}, unseen_first ? kUnseen : seen_at(100));
    const TrialStep second = next_step(first.trial, unseen_first ? seen_at(100) : kUnseen);
    EXPECT_EQ(second.trial, (AnomalyTrial{seen_at(100), 2, false, false}));
    const TrialStep third = next_step(second.trial, seen_at(100));
    EXPECT_EQ(third.left_out, Position{100});
    EXPECT_TRUE(third.trial.skips);
    EXPECT_TRUE(next_step(second.trial, kUnseen).trial.skips) << "but not for ever";
  }
}

TEST(AnomalyTrial, ConvictsOnlyOnTheSameBits) {
  const AnomalyTrial first{seen_at(100), 1, false, false};
  const Position begin{12 * kWindow};
  EXPECT_TRUE(carried_on(first, begin, kWindow, true)->convicts);
  EXPECT_FALSE(carried_on(first, begin, kWindow, false)->convicts) << "another plan";
  EXPECT_FALSE(carried_on(first, {begin.value - kWindow}, kWindow, true)->convicts) << "from an older origin";
  EXPECT_FALSE(carried_on(first, {begin.value + 3}, kWindow, true)->convicts) << "from inside the window";
  AnomalyTrial second = first;
  second.failures = 2;
  EXPECT_FALSE(carried_on(second, begin, kWindow, true)->convicts) << "a minibatch is left out by now";
  AnomalyTrial vague = first;
  vague.report.repeats = false;
  EXPECT_FALSE(carried_on(vague, begin, kWindow, true)->convicts) << "it met two versions of the weights";
  EXPECT_FALSE(carried_on({kUnseen, 1, false, false}, begin, kWindow, true)->convicts);
}

TEST(AnomalyTrial, IsOverWhenItsWindowIs) {
  const AnomalyTrial trial{seen_at(100), 1, true, false};
  EXPECT_TRUE(carried_on(trial, {12 * kWindow + kWindow - 1}, kWindow, true));
  EXPECT_FALSE(carried_on(trial, {13 * kWindow}, kWindow, true));
}

// ---- the leader ----

// Three workers train from HEAD at position 96, the beginning of window 12.
class Trying : public testing::Test {
 protected:
  Trying() {
    const HeadRecord head{1, {0}, {12 * kWindow}, std::string(64, 'a'), "document"};  // of a job before this one
    cluster.write({{}, {put(cluster.keys().head(), to_text(head))}});
    for (const int number : {1, 2, 3}) cluster.add(number);
    cluster.run_until_quiet(3000);
    cluster.run_until_quiet();
  }

  // All stop because of it, and whatever follows from that happens.
  void fail(const AnomalyReport& report) {
    HeldRecord held;
    held.anomaly = report;
    for (const int number : {1, 2, 3}) {
      const bool is_there = cluster.has(cluster.keys().member(worker(number)));
      if (is_there) cluster.end_training(number, TrainingEnded::How::kBroken, held);
    }
    pass_time();
  }
  void update(int number) { cluster.tell(number, FirstUpdate{cluster.generation()->roster.attempt}); }
  void pass_time() {
    for (int i = 0; i < 4; ++i) cluster.run_until_quiet(1000);
  }
  std::int64_t number() { return cluster.generation()->roster.attempt.generation.value; }
  bool is_quarantined() { return cluster.has(cluster.keys().quarantine("host")); }

  SmallCluster cluster;
};

TEST_F(Trying, TheSameMinibatchTwiceLeavesItOutFromThenOn) {
  const scheduler::Plan plan = cluster.generation()->roster.plan;
  fail(seen_at(100));
  ASSERT_EQ(number(), 2);
  EXPECT_EQ(cluster.generation()->roster.plan, plan);
  EXPECT_EQ(cluster.generation()->trial, (AnomalyTrial{seen_at(100), 1, true, false}));
  fail(seen_at(100));
  ASSERT_EQ(number(), 3);
  EXPECT_EQ(cluster.generation()->left_out, std::vector{Position{100}});
  EXPECT_EQ(cluster.generation()->trial, (AnomalyTrial{seen_at(100), 2, false, true}));
  for (const int worker : {1, 2, 3}) update(worker);
  pass_time();
  EXPECT_EQ(number(), 3);
  EXPECT_FALSE(is_quarantined());
  cluster.kill(3);
  pass_time();
  ASSERT_EQ(number(), 4);
  EXPECT_EQ(cluster.generation()->left_out, std::vector{Position{100}}) << "HEAD is not behind it";
}

TEST_F(Trying, AWindowThatPassesOnTheSameBitsConvictsTheSuspect) {
  fail(seen_at(100));
  ASSERT_EQ(number(), 2);
  update(1);
  pass_time();
  EXPECT_FALSE(cluster.has(cluster.keys().member(worker(2))));
  EXPECT_TRUE(is_quarantined());
  ASSERT_EQ(number(), 3);
  EXPECT_EQ(cluster.generation()->roster.plan.workers, (std::vector{worker(1), worker(3)}));
  EXPECT_TRUE(cluster.generation()->left_out.empty());
  ASSERT_EQ(cluster.effects_of<Rejoin>(2).size(), 1U);
  const auto record = parse_quarantine(cluster.view().find(cluster.keys().quarantine("host"))->value);
  EXPECT_EQ(*record, (QuarantineRecord{1, 60}));
  cluster.add(4);
  for (int i = 0; i < 40; ++i) cluster.run_until_quiet(1000);
  EXPECT_EQ(cluster.generation()->roster.plan.workers.size(), 2U) << "its host is shut out";
}

TEST_F(Trying, ALeaderThatIsAtFaultMakesWayForAnother) {
  AnomalyReport report = seen_at(100);
  report.suspect = worker(1);
  fail(report);
  update(3);
  pass_time();
  EXPECT_FALSE(cluster.has(cluster.keys().member(worker(1))));
  ASSERT_EQ(number(), 3);
  EXPECT_EQ(cluster.generation()->opener, worker(2));
}

TEST_F(Trying, AWindowThatPassesOtherwiseConvictsNobody) {
  AnomalyReport report = seen_at(100);
  report.repeats = false;
  for (const AnomalyReport& vague : {report, kUnseen, kExploded}) {
    fail(vague);
    for (const int worker : {1, 2, 3}) update(worker);
    pass_time();
    EXPECT_TRUE(cluster.has(cluster.keys().member(worker(2))));
    EXPECT_FALSE(is_quarantined());
  }
}

TEST_F(Trying, ADeathMeanwhileLeavesTheTrialWithoutAVerdict) {
  fail(seen_at(100));
  cluster.kill(3);
  pass_time();
  ASSERT_EQ(number(), 3);
  EXPECT_EQ(cluster.generation()->trial, (AnomalyTrial{seen_at(100), 1, false, false}));
  update(1);
  pass_time();
  EXPECT_TRUE(cluster.has(cluster.keys().member(worker(2))));
  fail(seen_at(100));
  EXPECT_EQ(cluster.generation()->left_out, std::vector{Position{100}});
}

TEST(TryingAlone, NobodyGoesIfTooFewWouldStay) {
  SmallCluster cluster;
  cluster.add(2);
  cluster.run_until_quiet(3000);
  cluster.run_until_quiet();
  HeldRecord held;
  held.anomaly = AnomalyReport{0, Position{1}, worker(2), true, 0};
  cluster.end_training(2, TrainingEnded::How::kBroken, held);
  for (int i = 0; i < 4; ++i) cluster.run_until_quiet(1000);
  ASSERT_TRUE(cluster.generation()->trial && cluster.generation()->trial->convicts);
  cluster.tell(2, FirstUpdate{cluster.generation()->roster.attempt});
  for (int i = 0; i < 4; ++i) cluster.run_until_quiet(1000);
  EXPECT_TRUE(cluster.has(cluster.keys().member(worker(2))));
}

}  // namespace
}  // namespace everstep::elastic::test
