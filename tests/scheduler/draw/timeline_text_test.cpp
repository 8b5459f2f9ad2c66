#include "scheduler/draw/timeline_text.h"

#include <algorithm>
#include <sstream>

#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

std::string text_of(const ScheduleRequest& request, const TextDrawing& drawing = {}) {
  const Drawn drawn = draw(request);
  return draw_text(drawn.schedule, drawn.timeline, drawing);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream input(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

// The timelines of the AMDP design, section 2.3.
TEST(TimelineText, DrawsDepthTwoAsTheDesignDoes) {
  EXPECT_EQ(text_of(request_of(ScheduleKind::kAmdp, 2, 1, 20, 1), {1, 27}),
            "t    0         1         2\n"
            "dev0 01..aa2bb3cc4dd5ee6ff7gg8hh\n"
            "dev1 .0aa1bb2cc3dd4ee5ff6gg7hh8i\n"
            "(cut after 27 of 64 columns)\n");
}

TEST(TimelineText, DrawsDepthFourWithTwoRoundsAsTheDesignDoes) {
  EXPECT_EQ(text_of(request_of(ScheduleKind::kAmdp, 4, 1, 8, 3), {1, 64}),
            "t    0         1         2         3         4         5         6\n"
            "dev0 02.1bb3dd.aa46cc5ff7hh.ee02gg1bbU3dd.aa46cc5ff7hh.ee02gg1bbU3dd.\n"
            "dev1 .0123.bbaaddcc4567.ffeehhgg0123.Ubbaaddcc4567.ffeehhgg0123.Ubbaa\n"
            "dev2 .1032.aabbccdd5476.eeffgghh1032.Uaabbccdd5476.eeffgghh1032.Uaabb\n"
            "dev3 13.0aa2cc.bb57dd4ee6gg.ff13hh0aaU2cc.bb57dd4ee6gg.ff13hh0aaU2cc.\n"
            "(cut after 64 of 84 columns)\n");
}

TEST(TimelineText, DrawsDepthEightWithOneRoundAsTheDesignDoes) {
  EXPECT_EQ(text_of(request_of(ScheduleKind::kAmdp, 8, 1, 8, 4), {1, 82}),
            "t    0         1         2         3         4         5         6         7         8\n"
            "dev0 04.12563dd7hh.ccbbggffaa04ee12563ddU7hh.ccbbggffaa04ee12563ddU7hh.ccbbggffaa04ee12\n"
            "dev1 .01452367.ddcchhggbbaaffee01452367.Uddcchhggbbaaffee01452367.Uddcchhggbbaaffee0145\n"
            "dev2 .10543276.ccddgghhaabbeeff10543276.Uccddgghhaabbeeff10543276.Uccddgghhaabbeeff1054\n"
            "dev3 15.03472cc6gg.ddaahheebb15ff03472ccU6gg.ddaahheebb15ff03472ccU6gg.ddaahheebb15ff03\n"
            "dev4 26.30741bb5ff.aaddeehhcc26gg30741bbU5ff.aaddeehhcc26gg30741bbU5ff.aaddeehhcc26gg30\n"
            "dev5 .23670145.bbaaffeeddcchhgg23670145.Ubbaaffeeddcchhgg23670145.Ubbaaffeeddcchhgg2367\n"
            "dev6 .32761054.aabbeeffccddgghh32761054.Uaabbeeffccddgghh32761054.Uaabbeeffccddgghh3276\n"
            "dev7 37.21650aa4ee.bbccffggdd37hh21650aaU4ee.bbccffggdd37hh21650aaU4ee.bbccffggdd37hh21\n"
            "(cut after 82 of 107 columns)\n");
}

// Forward, gradient of the input and gradients of the weights: 0, a and A.
TEST(TimelineText, DrawsBothHalvesOfASplitBackward) {
  EXPECT_EQ(text_of(request_of(ScheduleKind::kClockwork, 2, 1, 4, 2)),
            "t    0         1         2\n"
            "dev0 01.a2bA3cB4dCDU5e6fE7gFGhHU\n"
            "dev1 .0a1bA2cB3dCD4Ue5fE6gF7hGHU\n");
  const std::vector<std::string> letters = lines_of(text_of(request_of(ScheduleKind::kClockwork, 12, 1, 12, 1)));
  EXPECT_EQ(letters[1], "dev0  A.F.E.D.C.BG.bLc+Kd+Je+If+Ha++h+.i+j+k+l+g+#");
}

// The second rows: P copies a sum, T takes the step, * does both, ^ is under what reads its weights.
TEST(TimelineText, DrawsAProvisionalStepUnderItsDevices) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 2, 1, 4, 2);
  request.provisional = 1;
  EXPECT_EQ(text_of(request),
            "t    0         1         2\n"
            "dev0 01.a2bA3cBC.4dDU5e6fE7gFG..hHU\n"
            "                *^            *\n"
            "dev1 .0a1bA2cBC3.dD4Ue5fE6gFG7.hH.U\n"
            "               PT  ^         PT\n");
  // What comes behind the cut is not drawn.
  EXPECT_EQ(lines_of(text_of(request, {1, 11}))[2], "dev1 .0a1bA2cBC3");
  EXPECT_EQ(lines_of(text_of(request, {1, 11}))[3], "               P");
}

TEST(TimelineText, HidesNoCopyOfASum) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 4, 1, 8, 3);
  request.provisional = 1;
  const Drawn drawn = draw(request);
  for (const Tick ticks : {1, 2, 3}) {
    const std::vector<std::string> lines = lines_of(draw_text(drawn.schedule, drawn.timeline, {ticks, 1000}));
    for (std::size_t worker = 0; worker < 4; ++worker) {
      const std::string marks = lines[2 * worker + 2].substr(5);
      for (std::size_t i = 0; i < drawn.schedule.workers[worker].size(); ++i) {
        if (drawn.schedule.workers[worker][i].kind != OpKind::kProvisional) continue;
        const Tick begin = drawn.timeline.spans[worker][i].begin;
        const auto column = static_cast<std::size_t>((begin - ticks / 2 + ticks - 1) / ticks);
        ASSERT_LT(column, marks.size());
        EXPECT_TRUE(marks[column] == 'P' || marks[column] == '*') << ticks << " ticks, column " << column << marks;
      }
    }
  }
}

TEST(TimelineText, DrawsAWholeRunWithoutANote) {
  EXPECT_EQ(text_of(request_of(ScheduleKind::kOneFOneB, 1, 1, 3, 2)),
            "t    0         1\n"
            "dev0 0aa1bb2ccU3dd4ee5ffU\n");
}

TEST(TimelineText, DoesNotDrawUpdatesWithoutCost) {
  const Drawn drawn = draw(request_of(ScheduleKind::kOneFOneB, 1, 1, 3, 1), 1, 2, 0);
  EXPECT_EQ(draw_text(drawn.schedule, drawn.timeline), "t    0\ndev0 0aa1bb2cc\n");
}

TEST(TimelineText, NamesGroupsAndCountsTheirMinibatchesThroughPartialRounds) {
  // Group 0 has rounds of 2 and 1 in each window, group 1 of 2 and 0.
  EXPECT_EQ(text_of(request_of(ScheduleKind::kOneFOneB, 2, 2, 5, 2)),
            "t           0         1         2\n"
            "group0 dev0 01..aa2bb.ccU34..dd5ee.ffU\n"
            "group0 dev1 .0aa1bb2cc..U.3dd4ee5ff..U\n"
            "group1 dev0 01..aa.bb...U23..cc.dd...U\n"
            "group1 dev1 .0aa1bb.....U.2cc3dd.....U\n");
}

TEST(TimelineText, SpellsDeepPipelinesWithLettersAndDeeperOnesWithArrows) {
  const std::vector<std::string> letters = lines_of(text_of(request_of(ScheduleKind::kAmdp, 12, 1, 12, 1)));
  EXPECT_EQ(letters[1], "dev0  AG.BEHKDCJIFffLll.ccddiijjeebbkkhhaa..gg#");
  const std::string arrows = text_of(request_of(ScheduleKind::kGpipe, 28, 1, 28, 1), {1, 1000});
  EXPECT_EQ(lines_of(arrows)[28],
            "dev27 " + std::string(27, '.') + std::string(28, '>') + std::string(56, '<') + std::string(54, '.') + "#");
}

TEST(TimelineText, RepeatsNamesOnlyAfterWholeRounds) {
  // Depth 3 has nine names, so that a round never begins in the middle of them.
  const std::vector<std::string> lines = lines_of(text_of(request_of(ScheduleKind::kGpipe, 3, 1, 12, 1)));
  EXPECT_EQ(lines[1].substr(5, 12), "012345678012");
}

TEST(TimelineText, ScalesTimesToColumns) {
  const Drawn drawn = draw(request_of(ScheduleKind::kAmdp, 4, 1, 8, 2), 10, 20, 10);
  const Drawn unit = draw(request_of(ScheduleKind::kAmdp, 4, 1, 8, 2));
  EXPECT_EQ(draw_text(drawn.schedule, drawn.timeline, {10, 200}), draw_text(unit.schedule, unit.timeline, {1, 200}));
  const std::string coarse = draw_text(unit.schedule, unit.timeline, {2, 200});
  EXPECT_EQ(lines_of(coarse)[1], "dev0 21bd.a6cf7he0g1b3da4c5fh.e.g");
}

// Whatever the costs are: a column shows the op that runs in its middle, found here by looking at all of them.
TEST(TimelineText, ShowsInEachColumnWhatRunsInItsMiddle) {
  for (const Tick ticks : {1, 3, 4}) {
    const Drawn drawn = draw(request_of(ScheduleKind::kAmdp, 4, 1, 9, 2), 3, 7, 4);
    const std::vector<std::string> lines = lines_of(draw_text(drawn.schedule, drawn.timeline, {ticks, 1000}));
    for (std::size_t worker = 0; worker < 4; ++worker) {
      const std::string row = lines[worker + 1].substr(5);
      for (std::size_t column = 0; column < row.size(); ++column) {
        const Tick middle = static_cast<Tick>(column) * ticks + ticks / 2;
        const auto& spans = drawn.timeline.spans[worker];
        const auto running = std::find_if(
            spans.begin(), spans.end(), [&](const OpSpan& span) { return span.begin <= middle && middle < span.end; });
        const char shown = row[column];
        if (running == spans.end()) {
          EXPECT_EQ(shown, '.');
          continue;
        }
        const OpKind kind = drawn.schedule.workers[worker][running - spans.begin()].kind;
        EXPECT_EQ(shown == 'U', kind == OpKind::kUpdate);
        EXPECT_EQ(shown >= '0' && shown <= '9', kind == OpKind::kForward);
        EXPECT_EQ(shown >= 'a' && shown <= 'j', kind == OpKind::kBackward);
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
