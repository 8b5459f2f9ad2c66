#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/validate.h"
#include "tests/scheduler/support.h"

// Schedules that complete, keep every link and every collective in order, and still compute the wrong thing.
namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

std::string verdict_on(const std::string& header, const std::vector<std::string>& workers) {
  std::string text = "everstep-schedule 1 " + header + "\n";
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    text += "worker " + std::to_string(worker) + ": " + workers[worker] + "\n";
  }
  const auto schedule = parse_schedule(text);
  if (!schedule) return schedule.error().line();
  const Status status = validate(*schedule);
  return status ? "valid" : status.error().line();
}

TEST(Validate, RefusesASynchronousWindowThatStartsBeforeTheUpdate) {
  const std::string header = "kind=1f1b depth=1 window=1 windows=2";
  ASSERT_EQ(verdict_on(header, {"F0.0.0@0 B0.0.0@0 R0@0 U0 F1.0.0@0 B1.0.0@0 R1@0 U1"}), "valid");
  EXPECT_THAT(verdict_on(header, {"F0.0.0@0 B0.0.0@0 R0@0 F1.0.0@0 U0 B1.0.0@0 R1@0 U1"}),
              HasSubstr("1.0.0@0 of worker 0"));
  EXPECT_NE(verdict_on(header, {"F0.0.0@0 B0.0.0@0 R0@0 F1.0.0@0 B1.0.0@0 U0 R1@0 U1"}), "valid");
}

// Nothing mismatches and one buffer is enough, since the second group had nothing of the first window.
TEST(Validate, RefusesAWholeWindowOnTheVersionBefore) {
  const std::string header = "kind=1f1b depth=1 width=2 window=2 windows=2 first-minibatch=1";
  const std::string first = "F0.0.0@0 B0.0.0@0 R0@0 U0 F1.0.0@0 B1.0.0@0 R1@0 U1";
  ASSERT_EQ(verdict_on(header, {first, "R0@0 U0 F1.0.0@0 B1.0.0@0 R1@0 U1"}), "valid");
  EXPECT_THAT(verdict_on(header, {first, "R0@0 F1.0.0@0 B1.0.0@0 U0 R1@0 U1"}), HasSubstr("1.0.0@0 of worker 1"));
}

TEST(Validate, RefusesAFlushThatDoesNotFlush) {
  const std::string lists[] = {
      "F0.0.0@0 F0.0.1@0 B0.0.0@0 F1.0.0@0 B0.0.1@0 R0@0 F1.0.1@0 U0 B1.0.0@0 B1.0.1@0 R1@0 U1",
      "F0.0.0@1 B0.0.0@1 F0.0.1@1 B0.0.1@1 R0@1 F1.0.0@1 B1.0.0@1 U0 F1.0.1@1 B1.0.1@1 R1@1 U1"};
  const std::string header = "kind=amdp depth=2 window=2 windows=2";
  ASSERT_EQ(verdict_on(header, {lists[0], lists[1]}), "valid");
  EXPECT_NE(verdict_on(header + " flush-after=0", {lists[0], lists[1]}), "valid");
}

// Only the chunk of a last stage has a second gradient buffer; any other would mix two windows.
TEST(Validate, RefusesAnUpdateOneBackwardLaterWhereThereIsOneGradientBuffer) {
  Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 1, 4, 2)).value();
  ASSERT_TRUE(validate(schedule));
  std::vector<Op>& ops = schedule.workers[1];
  const auto update = std::find(ops.begin(), ops.end(), update_of(0));
  ASSERT_EQ(to_string(update[1]), "B1.0.1@2");
  std::swap(update[0], update[1]);
  const Status status = validate(schedule);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("worker 1"));
}

// One replica captures a backward too many, the other one too few: the sum is right and the contents are not.
TEST(Validate, RefusesCapturesWhoseErrorsMakeUpForEachOther) {
  ScheduleRequest request = request_of(ScheduleKind::kOneFOneB, 1, 2, 4, 1);
  request.capture_every_rounds = 1;
  Schedule schedule = make_schedule(request).value();
  ASSERT_EQ(to_string(schedule.workers[0][2]), "C0.0@0");
  ASSERT_TRUE(validate(schedule));
  std::swap(schedule.workers[0][1], schedule.workers[0][2]);
  std::rotate(schedule.workers[1].begin() + 2, schedule.workers[1].begin() + 3, schedule.workers[1].begin() + 5);
  ASSERT_EQ(to_string(schedule.workers[1][4]), "C0.0@0");
  const Status status = validate(schedule);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("C0.0@0"));
}

TEST(Validate, RefusesPipedreamReadingAVersionThatIsNotThereYet) {
  const std::string header = "kind=pipedream-2bw depth=1 window=1 windows=3";
  ASSERT_EQ(verdict_on(header, {"F0.0.0@0 B0.0.0@0 R0@0 U0 F1.0.0@0 B1.0.0@0 R1@0 U1 F2.0.0@0 B2.0.0@0 R2@0 U2"}),
            "valid");
  EXPECT_THAT(verdict_on(header, {"F0.0.0@0 B0.0.0@0 R0@0 F1.0.0@0 B1.0.0@0 F2.0.0@0 U0 R1@0 U1 B2.0.0@0 R2@0 U2"}),
              HasSubstr("F2.0.0@0"));
}

}  // namespace
}  // namespace everstep::scheduler
