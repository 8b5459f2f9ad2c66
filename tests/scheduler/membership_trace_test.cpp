#include "scheduler/membership_trace.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/scheduler/trace_fixtures.h"

namespace everstep::scheduler {
namespace {

using Points = std::vector<MembershipPoint>;

MembershipTrace parse(std::string_view text) {
  auto trace = parse_membership_trace(text);
  EXPECT_TRUE(trace.ok()) << trace.error();
  return *std::move(trace);
}

std::string error_of(std::string_view text) {
  const auto trace = parse_membership_trace(text);
  EXPECT_FALSE(trace.ok());
  return trace.ok() ? "" : trace.error().message;
}

TEST(MembershipTrace, MergesWhatChangesAtOneInstant) {
  const MembershipTrace trace = parse(
      "100,add,a\n"
      "100,add,b\n"
      "350,remove,a\n"
      "350,add,c\n"
      "350,add,d\n"
      "600,remove,b\n");
  EXPECT_EQ(trace.points, (Points{{0, 2}, {250, 3}}));
  EXPECT_EQ(trace.duration_ms, 500);
  EXPECT_EQ(trace.changes(), 1);
  EXPECT_DOUBLE_EQ(trace.mean_workers(), 2.5);
  EXPECT_EQ(trace.max_workers(), 3);
}

TEST(MembershipTrace, KeepsASwapOfNodesAsAChange) {
  EXPECT_EQ(parse("0,add,a\n5,remove,a\n5,add,b\n9,remove,b\n").points, (Points{{0, 1}, {5, 1}}));
}

TEST(MembershipTrace, MayHaveNoWorkersForAWhile) {
  EXPECT_EQ(parse("0,add,a\n5,remove,a\n7,add,a\n9,add,b\n").points, (Points{{0, 1}, {5, 0}, {7, 1}}));
}

TEST(MembershipTrace, ReadsCountsAndDropsThoseThatSayNothingNew) {
  const MembershipTrace trace = parse(
      "2021-12-31, 23:59:58, 5\n"
      "2021-12-31, 23:59:59, 5\n"
      "2022-01-01, 00:00:01, 7\n"
      "2022-01-01, 00:00:02, 7\n");
  EXPECT_EQ(trace.points, (Points{{0, 5}, {3000, 7}}));
  EXPECT_EQ(trace.duration_ms, 4000);
  EXPECT_EQ(trace.overruled_lines, 0);
}

TEST(MembershipTrace, KnowsLeapDays) {
  EXPECT_EQ(parse("2024-02-28, 00:00:00, 1\n2024-03-01, 00:00:00, 1\n").duration_ms, 2 * 86'400'000);
  EXPECT_EQ(error_of("2023-02-29, 00:00:00, 1\n"), "line 1: there is no date and time '2023-02-29, 00:00:00'");
}

TEST(MembershipTrace, LetsALaterLineOverruleProbesThatOverlap) {
  const MembershipTrace trace = parse(
      "2021-12-10, 13:07:45, 80\n"
      "2021-12-10, 13:08:45, 80\n"
      "2021-12-10, 13:09:45, 80\n"
      "2021-12-10, 13:08:45, 70\n"
      "2021-12-10, 13:10:45, 70\n");
  EXPECT_EQ(trace.points, (Points{{0, 80}, {60'000, 70}}));
  EXPECT_EQ(trace.duration_ms, 180'000);
  EXPECT_EQ(trace.overruled_lines, 1);
}

TEST(MembershipTrace, AllowsCommentsBlankLinesBlanksAndCarriageReturns) {
  const MembershipTrace plain = parse("0,add,a\n5,add,b\n7,remove,a\n");
  EXPECT_EQ(parse("# nodes\r\n\r\n 0 , add , a \r\n  # more\n5,add,b\r\n\t\n7,remove,a"), plain);
}

TEST(MembershipTrace, NamesTheLineAndTheReasonOfAnError) {
  EXPECT_EQ(error_of("0,add,a\n1,delete,a\n"), "line 2: unknown action 'delete'");
  EXPECT_EQ(error_of("-1,add,a\n"), "line 1: the time '-1' is negative");
  EXPECT_EQ(error_of("# x\n\n5,add,a\n4,add,b\n"), "line 4: the time '4' is before that of the line above");
  EXPECT_EQ(error_of("1.5,add,a\n"), "line 1: the time '1.5' is not a whole number of milliseconds");
  EXPECT_EQ(error_of("99999999999999999999,add,a\n"),
            "line 1: the time '99999999999999999999' is not a whole number of milliseconds");
  EXPECT_EQ(error_of("9223372036854775807,add,a\n"), "line 1: the time '9223372036854775807' is too large");
  EXPECT_EQ(error_of("0,add,a\n1,remove,b\n"), "line 2: node 'b' is not there");
  EXPECT_EQ(error_of("0,add,a\n1,add,a\n"), "line 2: node 'a' is already there");
  EXPECT_EQ(error_of("0,add\n"), "line 1: cannot read '0,add'");
  EXPECT_EQ(error_of("0,add,a,b\n"), "line 1: cannot read '0,add,a,b'");
  EXPECT_EQ(error_of("0,add,\n"), "line 1: cannot read '0,add,'");
  EXPECT_EQ(error_of(std::string(50, 'x') + "\n"), "line 1: cannot read '" + std::string(40, 'x') + "…'");
}

TEST(MembershipTrace, NamesTheLineAndTheReasonOfABadCount) {
  const std::string first = "2021-12-10, 13:07:45, 80\n";
  EXPECT_EQ(error_of(first + "2021-12-10, 13:08:45, many\n"),
            "line 2: the number of workers 'many' is no whole number");
  EXPECT_EQ(error_of(first + "2021-12-10, 13:08:45, -3\n"), "line 2: the number of workers '-3' is no whole number");
  EXPECT_EQ(error_of(first + "2021-12-10, 13:08:45, 1000001\n"),
            "line 2: the number of workers '1000001' is too large");
  EXPECT_EQ(error_of(first + "2021-12-10, 24:00:00, 3\n"), "line 2: there is no date and time '2021-12-10, 24:00:00'");
  EXPECT_EQ(error_of(first + "2021-13-10, 13:08:45, 3\n"), "line 2: there is no date and time '2021-13-10, 13:08:45'");
  EXPECT_EQ(error_of(first + "10.12.2021, 13:08:45, 3\n"), "line 2: there is no date and time '10.12.2021, 13:08:45'");
  EXPECT_EQ(error_of(first + "2021-12-10, 1:08:45, 3\n"), "line 2: there is no date and time '2021-12-10, 1:08:45'");
  EXPECT_EQ(error_of(first + "5,add,a\n"), "line 2: there is no date and time '5, add'");
  EXPECT_EQ(error_of(first + "2021-12-10, 13:20:00, 3\n2021-12-10, 13:17:59, 3\n"),
            "line 3: the time '13:17:59' is before that of the line above");
  EXPECT_EQ(error_of(first + "2021-12-10, 13:07:44, 3\n"),
            "line 2: the time '13:07:44' is before that of the line above");
}

TEST(MembershipTrace, RefusesWhatCoversNoTime) {
  EXPECT_EQ(error_of(""), "the trace is empty");
  EXPECT_EQ(error_of("# only a comment\n\n"), "the trace is empty");
  EXPECT_EQ(error_of("7,add,a\n7,add,b\n"), "the trace covers no time: all its lines are at one instant");
}

TEST(MembershipTrace, RefusesAFileThatIsTooLarge) {
  const std::string text(kMaxTraceBytes + 1, '\n');
  EXPECT_EQ(error_of(text), "the trace has 16777217 bytes, more than 16777216");
}

// Whatever the text is, the answer is a trace that keeps its promises, or one line.
TEST(MembershipTrace, AnswersAnyTextWithATraceOrAnError) {
  const std::vector<std::string> pieces = {"0,add,a\n",
                                           "7,add,b\n",
                                           "7,remove,a\n",
                                           "12,add,c\n",
                                           "2021-12-10, 13:07:45, 8\n",
                                           "2021-12-10, 13:08:45, 9\r\n",
                                           "# x\n",
                                           "\n",
                                           " ",
                                           ",",
                                           "-",
                                           "0"};
  int traces = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const RandomStream random(seed, 2);
    std::string text;
    for (std::uint64_t i = 0; i < 1 + seed % 9; ++i) text += pieces[random.below(i, pieces.size())];
    const auto trace = parse_membership_trace(text);
    if (!trace) {
      EXPECT_FALSE(trace.error().message.empty());
      continue;
    }
    ++traces;
    EXPECT_EQ(trace->points.front().time_ms, 0) << text;
    EXPECT_LT(trace->points.back().time_ms, trace->duration_ms) << text;
  }
  EXPECT_GT(traces, 0);
}

struct Published {
  const char* file;
  int changes;
  double hours;
  double mean_workers;
  int max_workers;
  int overruled_lines;
};

// Counted by another program from the same files.
TEST(MembershipTrace, ReadsThePublicTraces) {
  const Published table[] = {
      {"bamboo/p3-trace.csv", 161, 11.3667, 24.0279, 32, 0},
      {"bamboo/g4dn-trace.csv", 97, 10.6333, 12.7602, 24, 0},
      {"bamboo/a100x1-east1b.txt", 74, 27.0183, 57.30, 64, 0},
      {"bamboo/v100x1-east1c.txt", 120, 24.1703, 76.33, 80, 15},
      {"oobleck/5m.csv", 14, 1.245, 23, 30, 0},
      {"oobleck/10m.csv", 14, 2.505, 23, 30, 0},
      {"oobleck/30m.csv", 14, 7.5, 23, 30, 0},
      {"oobleck/1h.csv", 14, 15, 23, 30, 0},
      {"oobleck/3h.csv", 14, 45, 23, 30, 0},
      {"oobleck/6h.csv", 14, 90, 23, 30, 0},
  };
  for (const Published& row : table) {
    const MembershipTrace trace = parse(trace_fixture(row.file));
    EXPECT_EQ(trace.changes(), row.changes) << row.file;
    EXPECT_NEAR(static_cast<double>(trace.duration_ms) / 3.6e6, row.hours, 1e-4) << row.file;
    EXPECT_NEAR(trace.mean_workers(), row.mean_workers, 0.005) << row.file;
    EXPECT_EQ(trace.max_workers(), row.max_workers) << row.file;
    EXPECT_EQ(trace.overruled_lines, row.overruled_lines) << row.file;
  }
}

}  // namespace
}  // namespace everstep::scheduler
