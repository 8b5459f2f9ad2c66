#include "launcher/rehearse/trace/trace_figures.h"

#include <gmock/gmock.h>

namespace everstep::launcher {
namespace {

constexpr std::int64_t kWindow = 10;
constexpr double kExact = 1e-9;

Tick at(double seconds) { return ticks_of(seconds); }

// A record that is written by hand, in seconds.
class Story {
 public:
  Story() { record_.window = kWindow; }

  // Updates of one generation at these times, from that number on.
  Story& generation(std::int64_t number, std::int64_t first_step, const std::vector<double>& times,
                    std::int64_t redone = 0) {
    for (const double time : times) record_.steps.push_back({{number}, first_step++, at(time)});
    GenerationChanged change;
    change.generation = {number};
    change.plan = "plan " + std::to_string(number);
    change.redone = redone;
    change.phases.agree = 0.25;
    record_.changes.push_back(change);
    return *this;
  }
  Story& kill(double time) {
    record_.losses.push_back(at(time));
    return *this;
  }
  Story& nobody(double begin, double end) {
    record_.nobody.push_back({at(begin), at(end)});
    return *this;
  }
  TraceFigures figures() const { return figures_of(record_); }

 private:
  TraceRecord record_;
};

TEST(TraceFigures, FindNothingLostWhereNothingChanges) {
  const TraceFigures figures = Story().generation(1, 1, {0, 1, 2, 3, 4}).figures();
  EXPECT_TRUE(figures.changes.empty());
  EXPECT_DOUBLE_EQ(figures.lost(), 0);
  EXPECT_EQ(figures.steps, 5);
  EXPECT_DOUBLE_EQ(figures.shortest_step, 1);
}

TEST(TraceFigures, CountWhatAJoinTakesBeyondAStep) {
  // The new plan makes a step in 0.5 s; 0.8 s passed between the two generations.
  const TraceFigures figures = Story().generation(1, 1, {0, 1, 2, 3}).generation(2, 5, {3.8, 4.3, 4.8, 5.3}).figures();
  ASSERT_EQ(figures.changes.size(), 1U);
  EXPECT_NEAR(figures.changes[0].stall, 0.3, kExact);
  EXPECT_FALSE(figures.changes[0].is_loss);
  EXPECT_EQ(figures.changes[0].redone, 0);
  EXPECT_DOUBLE_EQ(figures.changes[0].phases.agree, 0.25);
  EXPECT_NEAR(figures.lost(), 0.3, kExact);
}

TEST(TraceFigures, CountThePartOfAWindowThatADeathThrewAwayOnce) {
  // Killed 0.4 s into a window (4 of 10 minibatches), 0.2 s of recovery, then the window again.
  const TraceFigures figures =
      Story().generation(1, 1, {0, 1, 2, 3}).kill(3.4).generation(2, 5, {4.6, 5.6, 6.6, 7.6}, 4).figures();
  ASSERT_EQ(figures.changes.size(), 1U);
  EXPECT_TRUE(figures.changes[0].is_loss);
  EXPECT_NEAR(figures.changes[0].stall, 0.2, kExact);
  EXPECT_NEAR(figures.changes[0].redone_seconds, 0.4, kExact);
  EXPECT_EQ(figures.redone(), 4);
  EXPECT_NEAR(figures.lost(), 0.6, kExact);
}

TEST(TraceFigures, CountWholeUpdatesThatAreMadeAgain) {
  // Back to a checkpoint two updates ago: 24 minibatches, of which 4 were of the window at hand.
  const TraceFigures figures =
      Story().generation(1, 1, {0, 1, 2, 3}).kill(3.4).generation(2, 3, {4.6, 5.6, 6.6, 7.6}, 24).figures();
  EXPECT_EQ(figures.steps_redone, 2);
  EXPECT_EQ(figures.steps, 6);
  EXPECT_EQ(figures.redone(), 24);
  EXPECT_NEAR(figures.stalls(), 0.2, kExact);
  EXPECT_NEAR(figures.redone_seconds(), 2.4, kExact);
}

TEST(TraceFigures, LetALossAnswerForUpdatesThatAreMadeAgainAfterAJoin) {
  // Two updates back; the second of them is made by the generation after the next.
  const TraceFigures figures = Story()
                                   .generation(1, 1, {0, 1, 2, 3})
                                   .kill(3)
                                   .generation(2, 3, {4.5}, 20)
                                   .generation(3, 4, {5.5, 6.5, 7.5, 8.5})
                                   .figures();
  ASSERT_EQ(figures.changes.size(), 2U);
  EXPECT_EQ(figures.changes[0].redone, 20);
  EXPECT_NEAR(figures.changes[0].redone_seconds, 2, kExact);
  EXPECT_NEAR(figures.changes[0].stall, 0.5, kExact);
  EXPECT_NEAR(figures.changes[1].lost(), 0, kExact);
  EXPECT_EQ(figures.steps_redone, 2);
}

TEST(TraceFigures, CountUpdatesMadeAgainThatNobodyTold) {
  TraceRecord record;
  record.window = kWindow;
  for (int i = 0; i < 4; ++i) record.steps.push_back({{1}, i + 1, at(i)});
  for (int i = 0; i < 4; ++i) record.steps.push_back({{2}, i + 4, at(4.0 + i)});
  const TraceFigures figures = figures_of(record);
  EXPECT_EQ(figures.redone(), kWindow);
  EXPECT_NEAR(figures.lost(), 1, kExact);
}

TEST(TraceFigures, DoNotLoseTheTimeOfAGenerationThatMadeNoUpdate) {
  // Generation 2 died before its first update: all is in the gap between 1 and 3.
  const TraceFigures figures =
      Story().generation(1, 1, {0, 1, 2, 3}).kill(3.1).kill(4.0).generation(3, 5, {6, 7, 8, 9}, 1).figures();
  ASSERT_EQ(figures.changes.size(), 1U);
  EXPECT_NEAR(figures.lost(), 2, kExact);
}

TEST(TraceFigures, DoNotCountTimeWithoutWorkers) {
  const TraceFigures figures =
      Story().generation(1, 1, {0, 1, 2, 3}).kill(3).nobody(3, 13).generation(2, 5, {15, 16, 17, 18}).figures();
  EXPECT_NEAR(figures.lost(), 1, kExact) << "two seconds beyond nobody's time, of which one is a step";
}

TEST(TraceFigures, CountPausesInsideAGeneration) {
  const TraceFigures figures = Story().generation(1, 1, {0, 1, 2, 5, 6, 7.5}).figures();
  EXPECT_NEAR(figures.pauses, 2, kExact) << "3 s instead of one; 1.5 s is no pause";
  EXPECT_NEAR(figures.lost(), 2, kExact);
}

TEST(TraceFigures, TakeTheStepTimeOfOthersForAShortGeneration) {
  const TraceFigures figures =
      Story().generation(1, 1, {0, 1, 2, 3}).generation(2, 5, {4.5}).generation(3, 6, {5.5, 6.5, 7.5, 8.5}).figures();
  EXPECT_NEAR(figures.stalls(), 0.5, kExact);
}

TEST(TraceGoodput, SetsRealSecondsAgainstThoseOfTheTrace) {
  EXPECT_DOUBLE_EQ(goodput_of(0, 3'600'000), 1);
  EXPECT_DOUBLE_EQ(goodput_of(36, 3'600'000), 0.99);
  EXPECT_DOUBLE_EQ(goodput_of(1e6, 3'600'000), 0);
}

TEST(JoinFigures, LeaveOutThoseWhoNeverTrained) {
  const JoinFigures figures =
      join_figures_of({{4, at(10), at(11)}, {5, at(10), at(13)}, {6, at(20), std::nullopt}, {7, at(30), at(32)}});
  EXPECT_EQ(figures.joined, 3);
  EXPECT_DOUBLE_EQ(figures.median, 2);
  EXPECT_DOUBLE_EQ(figures.longest, 3);
  EXPECT_DOUBLE_EQ(figures.total, 6);
  EXPECT_EQ(join_figures_of({}), JoinFigures{});
}

}  // namespace
}  // namespace everstep::launcher
