#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduler/clockwork.h"
#include "scheduler/schedule.h"
#include "scheduler/validate.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kHeader = "everstep-schedule 1 kind=1f1b depth=2 window=2";
const std::string kWorker0 = "worker 0: F0.0.0@0 F0.0.1@0 B0.0.0@0 B0.0.1@0 R0@0 U0";
const std::string kWorker1 = "worker 1: F0.0.0@1 B0.0.0@1 F0.0.1@1 B0.0.1@1 R0@1 U0";

std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

std::string refusal_of(const std::string& text) {
  const auto schedule = parse_schedule(text);
  EXPECT_FALSE(schedule) << text;
  if (schedule) return "";
  EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidArgument);
  return schedule.error().line();
}

rc::Gen<ScheduleRequest> any_request() {
  return rc::gen::exec([] {
    ScheduleRequest request;
    request.kind = *rc::gen::elementOf(all_schedule_kinds());
    request.depth =
        *rc::gen::suchThat(rc::gen::inRange(1, 9), [&](int depth) { return exists_at(request.kind, depth); });
    request.chunks_per_device = *rc::gen::inRange(1, 4);
    request.width = *rc::gen::inRange(1, 4);
    request.window = request.depth * request.width + *rc::gen::inRange(0, 20);
    request.windows = *rc::gen::inRange(1, 4);
    request.first_window = *rc::gen::element<std::int64_t>(0, 1, 17, 123'456'789'012);
    request.first_minibatch = *rc::gen::inRange(0, request.window);
    if (*rc::gen::arbitrary<bool>()) request.stop_after_rounds = *rc::gen::inRange(1, 5);
    request.preload = *rc::gen::inRange(1, 3);
    const bool names_pipelines = *rc::gen::arbitrary<bool>();
    if (names_pipelines) request.pipelines = *rc::gen::elementOf(clockwork_pipelines(request.depth));
    request.lag = *rc::gen::inRange(0, 2);
    request.capture_every_rounds = *rc::gen::inRange(0, 3);
    request.flush_after = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20));
    return request;
  });
}

// Texts of the other kinds stay as they were.
TEST(ScheduleText, NamesPipelinesAndLagOnlyWhereTheyAreNotTheDefault) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 4, 1, 8, 1);
  const std::string plain = to_string(make_schedule(request).value());
  EXPECT_EQ(plain.find("pipelines"), std::string::npos);
  EXPECT_EQ(plain.find("lag"), std::string::npos);
  request.pipelines = 1;
  request.lag = 1;
  const std::string named = to_string(make_schedule(request).value());
  EXPECT_NE(named.find("depth=4 chunks=2 pipelines=1 width=1"), std::string::npos);
  EXPECT_NE(named.find("preload=2 lag=1"), std::string::npos);
  EXPECT_THAT(refusal_of(lines({"everstep-schedule 1 kind=clockwork depth=4 pipelines=3 window=8"})),
              HasSubstr("3 pipelines"));
}

TEST(ScheduleText, IsALineForTheRequestAndOneForEachWorker) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kOneFOneB, 2, 1, 2, 1)).value();
  EXPECT_EQ(to_string(schedule),
            lines({"everstep-schedule 1 kind=1f1b depth=2 chunks=2 width=1 window=2 windows=1 first-window=0 "
                   "first-minibatch=0 preload=2 capture-every=0",
                   kWorker0, kWorker1}));
}

TEST(ScheduleText, ComesBackEqual) {
  EXPECT_TRUE(rc::check([] {
    const Schedule schedule = make_schedule(*any_request()).value();
    const std::string text = to_string(schedule);
    const auto again = parse_schedule(text);
    RC_ASSERT(again.ok());
    RC_ASSERT(again->request == schedule.request);
    RC_ASSERT(again->slices == schedule.slices);
    RC_ASSERT(again->workers == schedule.workers);
    RC_ASSERT(to_string(*again) == text);
  }));
}

TEST(ScheduleText, TakesDefaultsForFieldsThatAreNotThere) {
  const auto schedule = parse_schedule(lines({kHeader, kWorker0, kWorker1}));
  ASSERT_TRUE(schedule) << schedule.error();
  EXPECT_EQ(schedule->request, request_of(ScheduleKind::kOneFOneB, 2, 1, 2, 1));
  EXPECT_TRUE(validate(*schedule));
}

TEST(ScheduleText, MayLackTheLastLineFeed) {
  std::string text = lines({kHeader, kWorker0, kWorker1});
  text.pop_back();
  EXPECT_TRUE(parse_schedule(text));
}

TEST(ScheduleText, ReadsAnyListsAndLeavesTheirMeaningToValidate) {
  const auto schedule = parse_schedule(lines({kHeader, "worker 0:", "worker 1: U7 U7"}));
  ASSERT_TRUE(schedule) << schedule.error();
  EXPECT_FALSE(validate(*schedule));
}

TEST(ScheduleText, NamesTheFieldOfTheHeaderThatItCannotRead) {
  EXPECT_THAT(refusal_of(""), AllOf(HasSubstr("line 1"), HasSubstr("does not start with 'everstep-schedule 1'")));
  EXPECT_THAT(refusal_of("everstep-plan 1\n"), HasSubstr("does not start with"));
  for (const std::string field :
       {"depth=", "depth=x", "depth=2x", "depth=99999999999", "depth", "kind=fast", "colour=red", "=", "width=2,3",
        "first-window=9223372036854775808", "stop-after-rounds=", "stop-after-rounds=1.5", "flush-after=1,,2",
        "flush-after=a", "capture-every=0x1"}) {
    EXPECT_THAT(refusal_of(lines({kHeader + " " + field, kWorker0, kWorker1})),
                AllOf(StartsWith("schedule text, line 1: "), HasSubstr("cannot read '" + field + "'")));
  }
}

TEST(ScheduleText, RefusesARequestThatNoScheduleCanHave) {
  EXPECT_THAT(refusal_of("everstep-schedule 1 kind=amdp depth=6 window=6\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("multiple of 4")));
  EXPECT_THAT(refusal_of("everstep-schedule 1 kind=1f1b depth=4 window=3\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("too small")));
  EXPECT_THAT(refusal_of("everstep-schedule 1 kind=1f1b depth=-1 window=3\n"), HasSubstr("depth is -1"));
}

TEST(ScheduleText, NamesTheLineAndTheTokenThatIsNoOp) {
  for (const std::string token : {"F0.0.0", "Q", "F0.0.0@0,", "\t", "U0\r", "F0.0.0@-1", "F0.0.99999999999@0"}) {
    EXPECT_THAT(refusal_of(lines({kHeader, kWorker0, kWorker1 + " " + token})),
                AllOf(HasSubstr("line 3"), HasSubstr("'" + token + "' is not an op")));
  }
}

TEST(ScheduleText, NamesTheLineThatIsNotTheNextWorker) {
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker1, kWorker0})), AllOf(HasSubstr("line 2"), HasSubstr("'worker 0:")));
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker0, kWorker0})), AllOf(HasSubstr("line 3"), HasSubstr("'worker 1:")));
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker0, "", kWorker1})), HasSubstr("line 3"));
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker0, kWorker1, "the end"})), HasSubstr("line 4"));
}

TEST(ScheduleText, CountsTheWorkers) {
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker0})), HasSubstr("expected 2 workers, found 1"));
  EXPECT_THAT(refusal_of(lines({kHeader})), HasSubstr("expected 2 workers, found 0"));
  EXPECT_THAT(refusal_of(lines({kHeader, kWorker0, kWorker1, "worker 2: U0"})), HasSubstr("found 3"));
}

// Whatever happens to a text, the reader answers, and what it accepts it can write and read again.
TEST(ScheduleText, IsReadOrRefusedWhateverByteIsDamaged) {
  const std::string good = to_string(make_schedule(request_of(ScheduleKind::kAmdp, 4, 1, 5, 1)).value());
  EXPECT_TRUE(rc::check([&] {
    std::string text = good;
    const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto byte = *rc::gen::elementOf(std::string("0123456789FBRCU.@ :=-,\nw"));
    *rc::gen::arbitrary<bool>() ? text[place] = byte : *text.insert(text.begin() + place, byte);
    const auto schedule = parse_schedule(text);
    if (!schedule) return;
    const auto again = parse_schedule(to_string(*schedule));
    RC_ASSERT(again.ok());
    RC_ASSERT(again->request == schedule->request);
    RC_ASSERT(again->workers == schedule->workers);
  }));
}

}  // namespace
}  // namespace everstep::scheduler
