#include <cmath>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>

#include "launcher/cli/quantities.h"
#include "launcher/supervise/progress.h"
#include "launcher/supervise/run_reporter.h"
#include "launcher/supervise/run_summary.h"
#include "launcher/worker/skipped_update.h"
#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kTokens = 1000;

trainer::StepReport report_of(std::int64_t step, double seconds, double busy = 0.5) {
  trainer::StepReport report;
  report.step = step;
  report.loss = 2.41528;
  report.learning_rate = 3e-4;
  report.gradient_norm = 0.51;
  report.busy = busy;
  report.at = ticks_of(seconds);
  return report;
}

TEST(RunStatistics, LeavesOutWhereThePipelineFillsAndDrains) {
  RunStatistics statistics(ticks_of(100), kTokens);
  statistics.add(report_of(1, 110, 0.1));  // processes warm up
  for (int step = 2; step <= 9; ++step) statistics.add(report_of(step, 110 + 0.5 * (step - 1), 0.9));
  statistics.add(report_of(10, 120, 0.1));  // the pipeline drains
  const Rate rate = statistics.steady();
  EXPECT_DOUBLE_EQ(rate.tokens_per_s, 2000);
  EXPECT_DOUBLE_EQ(rate.busy, 0.9);
  EXPECT_DOUBLE_EQ(statistics.seconds(), 20);
  EXPECT_EQ(statistics.tokens(), 10 * kTokens);
}

TEST(RunStatistics, WeighsTheBusyShareByTime) {
  RunStatistics statistics(0, kTokens);
  statistics.add(report_of(1, 1, 0));
  statistics.add(report_of(2, 2, 1));
  statistics.add(report_of(3, 5, 0.5));
  EXPECT_DOUBLE_EQ(statistics.steady().busy, 2.5 / 4);
}

TEST(RunStatistics, KnowsSomethingAboutTheShortestRuns) {
  RunStatistics statistics(0, kTokens);
  EXPECT_EQ(statistics.steady(), Rate{});
  EXPECT_EQ(statistics.last_seconds(), 0);
  statistics.add(report_of(1, 2, 0.25));
  EXPECT_EQ(statistics.steady(), (Rate{500, 0.25}));
  EXPECT_EQ(statistics.recent_seconds_per_step(), 2);
  statistics.add(report_of(2, 3, 0.75));
  EXPECT_EQ(statistics.steady(), (Rate{1000, 0.75}));
}

TEST(Progress, ShowsWhereTheRunIs) {
  RunStatistics statistics(0, 10'300);
  statistics.add(report_of(119, 0));
  const auto report = report_of(120, 1, 0.941);
  statistics.add(report);
  EXPECT_EQ(progress_text(report, statistics, 500, 200),
            "step 120/500  loss 2.4153  10.3 ktokens/s  busy 0.94  6m20s left");
  EXPECT_EQ(progress_text(report, statistics, 500, 12), "step 120/500");
  EXPECT_EQ(progress_event(report, statistics, 500),
            "event=step step=120 steps=500 loss=2.4153 learning_rate=0.0003 gradient_norm=0.5100 tokens_per_s=10300 "
            "busy=0.941 seconds_left=380");
}

TEST(Progress, TellsOfValidationAndOfSkippedUpdates) {
  RunStatistics statistics(0, 10'300);
  auto report = report_of(120, 1);
  report.skipped = true;
  report.skipped_in_all = 7;
  report.skipped_in_a_row = 3;
  statistics.add(report);
  EXPECT_THAT(progress_event(report, statistics, 500, Generation{2}, 2.5),
              AllOf(HasSubstr(" validation_loss=2.5000 "), HasSubstr(" skipped=7 ")));
  EXPECT_EQ(skipped_event(report, trainer::Accumulation::kFloat),
            R"(event=update_skipped step=120 in_a_row=3 in_all=7 reason="the gradient was not finite")");
  EXPECT_THAT(skipped_event(report, trainer::Accumulation::kFixedPoint),
              HasSubstr("had an element of 16000 / --window or more, which the sums of --reproducible cannot hold"));
  report.norm_limit = 12.5;
  report.gradient_norm = 40;
  EXPECT_THAT(skipped_event(report, trainer::Accumulation::kFixedPoint),
              HasSubstr("the gradient's norm of 40 was above 12.5 (--explode)"));
}

TEST(Progress, WritesDurationsAndSpeedsForPeople) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.2), "1m00s");
  EXPECT_EQ(duration_text(185), "3m05s");
  EXPECT_EQ(duration_text(7620), "2h07m");
  EXPECT_EQ(duration_text(443'000), "5d03h");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()).back(), 'h');
  EXPECT_EQ(speed_text(812.4), "812 tokens/s");
  EXPECT_EQ(speed_text(10'340), "10.3 ktokens/s");
  EXPECT_EQ(speed_text(1'250'000), "1.25 Mtokens/s");
}

RunSummary summary() {
  RunSummary summary;
  summary.steps = 100;
  summary.loss = 1.5;
  summary.rate = {2000, 0.93};
  summary.seconds = 61;
  summary.peak_bytes = std::int64_t{300} << 20;
  summary.predicted_bytes = std::int64_t{310} << 20;
  summary.plan.kind = scheduler::ScheduleKind::kAmdp;
  summary.plan.depth = 4;
  summary.plan.pipelines = 2;
  summary.plan.window = 16;
  summary.plan.cuts = {0, 3, 5, 7, 10};
  summary.output = "runs/x";
  return summary;
}

TEST(RunSummary, IsOneLineOfJson) {
  RunSummary one = summary();
  one.validation_loss = 1.75;
  const std::string text = summary_json(one);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto json = storage::parse_json(text);
  ASSERT_TRUE(json.ok()) << json.error();
  const storage::JsonReader reader(*json);
  EXPECT_EQ(*reader.integer_at("steps"), 100);
  EXPECT_EQ(*reader.number_at("loss"), 1.5);
  EXPECT_EQ(*reader.number_at("validation_loss"), 1.75);
  EXPECT_EQ(*reader.number_at("tokens_per_s"), 2000);
  EXPECT_EQ(*reader.number_at("busy"), 0.93);
  EXPECT_EQ(*reader.integer_at("skipped"), 0);
  EXPECT_EQ(*reader.number_at("seconds"), 61);
  EXPECT_EQ(*reader.member("memory")->integer_at("predicted_bytes"), one.predicted_bytes);
  EXPECT_EQ(storage::to_text(reader.member("plan")->json(), 0),
            R"({"kind":"amdp","depth":4,"pipelines":2,"width":1,"window":16,"cuts":[0,3,5,7,10]})");
}

TEST(RunSummary, WritesNullForALossThatIsNotFinite) {
  RunSummary one = summary();
  one.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(summary_json(one), HasSubstr(R"("loss":null,"validation_loss":null)"));
  EXPECT_THAT(summary_text(one), HasSubstr("loss       not finite\n"));
}

TEST(RunSummary, EndsWithTheCommandThatGoesOn) {
  RunSummary one = summary();
  EXPECT_THAT(summary_text(one), testing::EndsWith("output     runs/x\n"));
  EXPECT_THAT(summary_json(one), Not(HasSubstr("resume")));
  one.resume = "everstep resume --from=runs/x/checkpoints/job";
  EXPECT_THAT(summary_text(one), testing::EndsWith("output     runs/x\nresume     " + one.resume + "\n"));
  EXPECT_THAT(summary_json(one), HasSubstr("\"resume\":\"" + one.resume + "\""));
}

TEST(RunSummary, CountsCheckpoints) {
  RunSummary one = summary();
  one.checkpoints = trainer::CheckpointCounts{3, 2, 1, 90};
  EXPECT_THAT(summary_text(one), HasSubstr("\ncheckpoint step 90, 3 saved, 2 skipped, 1 failed\n"));
  EXPECT_THAT(summary_json(one), HasSubstr(R"("checkpoints":{"saved":3,"skipped":2,"failed":1,"last_step":90})"));
  one.checkpoints = trainer::CheckpointCounts{0, 0, 4, {}};
  EXPECT_THAT(summary_text(one), HasSubstr("\ncheckpoint none, 0 saved, 0 skipped, 4 failed\n"));
  EXPECT_THAT(summary_json(one), HasSubstr(R"("last_step":null)"));
}

TEST(RunSummary, IsShortForPeople) {
  RunSummary one = summary();
  one.skipped = 2;
  EXPECT_EQ(summary_text(one),
            "steps      100 in 1m01s, 2 skipped (gradient not finite or too large)\n"
            "loss       1.5000\n"
            "speed      2.0 ktokens/s, busy 0.930\n"
            "plan       amdp D=4 P=2 W=1, window 16\n"
            "memory     300 MiB on the fullest worker, predicted 310 MiB\n"
            "output     runs/x\n");
}

using RunReports = CommandFiles;

TEST_F(RunReports, WriteALineForEveryStep) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  RunReporter reporter({4, 2, kTokens, path("metrics.jsonl")}, streams);
  reporter.on_start(0);
  for (int step = 1; step <= 4; ++step) {
    reporter.on_step(report_of(step, 0.1 * step));
    if (step == 2) reporter.on_validation(3.5);
  }
  reporter.on_end();
  std::istringstream lines(text_of("metrics.jsonl"));
  std::string line;
  for (int step = 1; step <= 4; ++step) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto json = storage::parse_json(line);
    ASSERT_TRUE(json.ok()) << line;
    const storage::JsonReader reader(*json);
    EXPECT_EQ(*reader.integer_at("step"), step);
    EXPECT_EQ(*reader.integer_at("tokens"), step * kTokens);
    EXPECT_NEAR(*reader.number_at("tokens_per_s"), 10 * kTokens, 1e-3);
    EXPECT_EQ(reader.has("validation_loss"), step == 2);
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_EQ(reporter.validation_loss(), 3.5);
}

TEST_F(RunReports, SayInWhichGenerationAStepWasMade) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  RunReporter reporter({4, 0, kTokens, path("metrics.jsonl")}, streams);
  reporter.on_step(report_of(1, 1), Generation{1});
  reporter.on_step(report_of(2, 2), Generation{2});  // known before the change is told
  reporter.on_generation("gen 2");
  reporter.on_step(report_of(3, 3), Generation{2});
  reporter.on_end();
  std::istringstream lines(text_of("metrics.jsonl"));
  std::string line;
  for (const int generation : {1, 2, 2}) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_THAT(line, HasSubstr("\"generation\":" + std::to_string(generation) + ","));
  }
}

TEST_F(RunReports, AreEventsEveryFewSecondsWithoutATerminal) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  RunReporter reporter({100, 0, kTokens, path("metrics.jsonl")}, streams);
  reporter.on_start(0);
  for (int step = 1; step <= 100; ++step) reporter.on_step(report_of(step, 0.08 * step));
  reporter.on_end();
  EXPECT_THAT(log.str(), HasSubstr("event=step step=63 "));
  EXPECT_THAT(log.str(), HasSubstr("event=step step=100 "));
  const std::string text = log.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST_F(RunReports, AreOneLineOnATerminal) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log, 30};
  RunReporter reporter({2, 0, kTokens, path("metrics.jsonl")}, streams);
  reporter.on_start(0);
  reporter.on_step(report_of(1, 1));
  reporter.note("event=stopping");
  reporter.on_step(report_of(2, 2));
  reporter.on_end();
  EXPECT_EQ(log.str(),
            "\r\x1b[Kstep 1/2  loss 2.4153  1.0 kt"
            "\r\x1b[Kevent=stopping\n"
            "\r\x1b[Kstep 2/2  loss 2.4153  1.0 kt\n");
}

}  // namespace
}  // namespace everstep::launcher
