#include "scheduler/comparison.h"

#include "scheduler/schedule_summary.h"
#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

const ComparisonCell& cell_of(const std::vector<ComparisonRow>& rows, ScheduleKind kind, int depth, int rounds) {
  for (const ComparisonRow& row : rows) {
    for (const ComparisonCell& cell : row.cells) {
      if (row.kind == kind && cell.depth == depth && cell.rounds == rounds) return cell;
    }
  }
  ADD_FAILURE() << "no such cell";
  return rows.front().cells.front();
}

// Closed forms of the literature, with the backward twice as long as the forward.
TEST(Comparison, AgreesWithTheKnownBubbles) {
  const std::vector<ComparisonRow> rows = compare_schedules({4, 8, 16}, {1, 4});
  EXPECT_EQ(rows.size(), all_schedule_kinds().size());
  for (const int depth : {4, 8, 16}) {
    for (const int rounds : {1, 4}) {
      const auto busy = [&](ScheduleKind kind) { return cell_of(rows, kind, depth, rounds).busy; };
      const double minibatches = depth * rounds;
      const double period = 3 * depth + 1;
      EXPECT_NEAR(busy(ScheduleKind::kAmdp), 1 - 1 / period, 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kAmdpSync), rounds * 3 * depth / (rounds * period + 3), 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kOneFOneB), minibatches / (minibatches + depth - 1), 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kGpipe), minibatches / (minibatches + depth - 1), 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kInterleaved), 2 * minibatches / (2 * minibatches + depth - 1), 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kPipedream2bw), 1, 1e-12);
      EXPECT_NEAR(busy(ScheduleKind::kClockwork), 1, 1e-12);
      EXPECT_GT(busy(ScheduleKind::kClockworkSync), busy(ScheduleKind::kOneFOneB));
    }
  }
}

TEST(Comparison, CountsActivationsByTheirShareOfTheModel) {
  const std::vector<ComparisonRow> rows = compare_schedules({8}, {1, 4});
  const auto activations = [&](ScheduleKind kind) { return cell_of(rows, kind, 8, 4).activations; };
  EXPECT_EQ(activations(ScheduleKind::kAmdp), 8);
  EXPECT_EQ(activations(ScheduleKind::kOneFOneB), 8);
  EXPECT_EQ(activations(ScheduleKind::kGpipe), 32);
  EXPECT_EQ(activations(ScheduleKind::kClockwork), 8 / 2 + 2);
  EXPECT_EQ(activations(ScheduleKind::kInterleaved), 8 + 3.5);
}

TEST(Comparison, PrintsMarkdown) {
  const std::string text = to_markdown(compare_schedules({4, 8}, {4}));
  EXPECT_NE(text.find("| busy | D=4, T=4 | D=8, T=4 |\n|---|---:|---:|\n| amdp | 0.923 | 0.960 |\n"),
            std::string::npos);
  EXPECT_NE(text.find("| 1f1b | 0.842 | 0.821 |\n"), std::string::npos);
  EXPECT_NE(text.find("| interleaved | 0.914 | 0.901 |\n"), std::string::npos);
  EXPECT_NE(text.find("| interleaved | 5.5 | 11.5 |\n"), std::string::npos);
}

TEST(ScheduleSummary, CountsMinibatchesInFlight) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 8, 1, 32, 2);
  EXPECT_EQ(in_flight_peak(draw(request).schedule), (InFlightPeak{3, 8}));
  request.preload = 1;
  EXPECT_EQ(in_flight_peak(draw(request).schedule), (InFlightPeak{2, 8}));
  EXPECT_EQ(in_flight_peak(draw(request_of(ScheduleKind::kGpipe, 4, 1, 9, 1)).schedule), (InFlightPeak{9, 9}));
}

TEST(ScheduleSummary, CountsMinibatchesThatMeetTwoVersions) {
  const auto mismatched = [](ScheduleKind kind, int depth, int width) {
    return mismatched_minibatches(draw(request_of(kind, depth, width, 4 * depth * width, 3)).schedule);
  };
  EXPECT_EQ(mismatched(ScheduleKind::kAmdp, 8, 1), (std::vector<int>{0, 8, 8}));
  EXPECT_EQ(mismatched(ScheduleKind::kAmdp, 4, 2), (std::vector<int>{0, 8, 8}));
  EXPECT_EQ(mismatched(ScheduleKind::kAmdpSync, 8, 1), (std::vector<int>{0, 0, 0}));
}

TEST(ScheduleSummary, SharesBusyTimeOverTheWholeRun) {
  const Drawn drawn = draw(request_of(ScheduleKind::kOneFOneB, 2, 1, 2, 1), 1, 2, 3);
  EXPECT_EQ(drawn.timeline.makespan, 12);
  EXPECT_DOUBLE_EQ(busy_share(drawn.timeline), 0.5);
  EXPECT_EQ(busy_share({}), 0);
}

}  // namespace
}  // namespace everstep::scheduler
