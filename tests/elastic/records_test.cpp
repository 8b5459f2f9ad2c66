#include "elastic/records.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

GenerationRecord sample_generation() {
  GenerationRecord record;
  record.roster.attempt = {{7}, 0xdeadbeef};
  record.roster.plan = *wide_plan({{worker(1), "h"}, {worker(2), "h"}}, nullptr);
  record.roster.plan.spares = {worker(3)};
  record.roster.donors = {worker(4)};
  record.opener = worker(1);
  record.origin = {Origin::Kind::kMemory, {16}, {}};
  record.from = record.roster;
  record.from->attempt = {{6}, 1};
  record.from->donors.clear();
  record.reason = "worker-4 left\nand \\ more";
  record.left_out = {{100}, {1'000'000'000'000}};
  record.trial = AnomalyTrial{{12, Position{100}, worker(2), true, 0.1}, 2, false, true};
  return record;
}

// Reads back what is written, and refuses each text that lacks a byte or has one more.
template <typename Record>
void expect_round_trip(const Record& record, Result<Record> (*parse)(std::string_view)) {
  const std::string text = to_text(record);
  const auto read = parse(text);
  ASSERT_TRUE(read) << read.error() << "\n" << text;
  EXPECT_EQ(*read, record);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse(text.substr(0, length))) << text.substr(0, length);
  }
  EXPECT_FALSE(parse(text + "\n"));
  EXPECT_FALSE(parse(text + "more 1\n"));
  EXPECT_FALSE(parse(" " + text));
}

TEST(Records, ReadBackWhatTheyWrite) {
  expect_round_trip(JobSpec{5, 6, "build", "", {{"a", "1"}, {"b", "two words"}}}, &parse_job_spec);
  const MemberRecord member{worker(9), "n", "h", "10.0.0.1:1", MemberState::kLeaving, "spot notice", 120000};
  expect_round_trip(member, &parse_member);
  expect_round_trip(LeaderRecord{worker(2), 41}, &parse_leader);
  expect_round_trip(HeadRecord{3, {2}, {64}, std::string(64, 'c'), "{\n}\n"}, &parse_head_record);
  expect_round_trip(sample_generation().roster, &parse_roster);
  expect_round_trip(sample_generation(), &parse_generation);
  expect_round_trip(DrainRecord{{{3}, 1}, true, 5, false, true, true, "r"}, &parse_drain);
  expect_round_trip(PreparedRecord{false, "refused"}, &parse_prepared);
  expect_round_trip(PromiseRecord{17}, &parse_promise);
  expect_round_trip(HeldRecord{false, Position{8}, Generation{2}}, &parse_held);
  expect_round_trip(HeldRecord{}, &parse_held);
  expect_round_trip(HeldRecord{false, {}, {}, {{{2}, {16}, true, false}, {{2}, {8}, true, true}}}, &parse_held);
  expect_round_trip(HeldRecord{false, {}, {}, {{{2}, {16}, true, false}}, {}, HeldSums{{2}, {16}, 1, 3}}, &parse_held);
  GenerationRecord sums = sample_generation();
  sums.origin = {Origin::Kind::kSums, {16}, {}, 1, 2};
  expect_round_trip(sums, &parse_generation);
  expect_round_trip(SuspectRecord{true, "closed"}, &parse_suspect);
  expect_round_trip(AckRecord{"shard", "", 0.25}, &parse_ack);
  expect_round_trip(QuarantineRecord{2, 4}, &parse_quarantine);
  expect_round_trip(RequestRecord{0xfeed, {4}, "everstep scale", 8}, &parse_request);
  expect_round_trip(ProgressRecord{1, 2, 3.5, 4.25, 0.5, 0.75, "training", {}}, &parse_progress);
  expect_round_trip(ProgressRecord{1, 2, 3.5, 4.25, 0.5, 0.75, "training", {1500, 20}}, &parse_progress);
  ProgressRecord measured{1, 2, 3.5, 4.25, 0.5, 0.75, "training", {}};
  measured.learning_rate = 6e-4;
  measured.gradient_norm = std::numeric_limits<double>::infinity();
  measured.validation_loss = 3.75;
  measured.skipped = 7;
  expect_round_trip(measured, &parse_progress);
}

TEST(Records, HaveOneFormOnly) {
  EXPECT_TRUE(parse_promise("round 7\nend\n"));
  EXPECT_FALSE(parse_promise("round 07\nend\n"));
  EXPECT_FALSE(parse_promise("round -7\nend\n"));
  EXPECT_FALSE(parse_promise("round  7\nend\n"));
  EXPECT_FALSE(parse_promise("round 99999999999999999999\nend\n"));
  EXPECT_FALSE(parse_suspect("closed yes\nreason a\\tb\nend\n"));
}

TEST(Records, RefuseAWorkerThatIsNamedTwice) {
  RosterRecord roster = sample_generation().roster;
  roster.donors = {worker(1)};
  EXPECT_FALSE(parse_roster(to_text(roster)));
}

TEST(Records, RefuseAnOriginInMemoryThatNobodyHolds) {
  GenerationRecord record = sample_generation();
  record.from.reset();
  EXPECT_FALSE(parse_generation(to_text(record)));
}

TEST(Records, RefuseSumsThatNoGroupCanHaveKept) {
  const auto reads = [](const Origin& origin) {
    GenerationRecord record = sample_generation();
    record.origin = origin;
    return parse_generation(to_text(record)).ok();
  };
  EXPECT_TRUE(reads({Origin::Kind::kSums, {16}, {}, 1, 2}));
  EXPECT_FALSE(reads({Origin::Kind::kSums, {16}, {}, 2, 2}));
  EXPECT_FALSE(reads({Origin::Kind::kSums, {16}, {}, -1, 2}));
  EXPECT_FALSE(reads({Origin::Kind::kSums, {16}, {}, 1, 0}));
  EXPECT_FALSE(reads({Origin::Kind::kSums, {17}, {}, 1, 2}));
  EXPECT_FALSE(reads({Origin::Kind::kMemory, {16}, {}, 1, 2}));
}

TEST(Records, RefuseSettingsOutOfOrder) {
  EXPECT_FALSE(parse_job_spec(to_text(JobSpec{1, 0, "", "", {{"b", "1"}, {"a", "1"}}})));
}

TEST(Records, RefuseWhatIsTooLong) {
  EXPECT_FALSE(parse_suspect(to_text(SuspectRecord{true, std::string(2 << 20, 'x')})));
}

}  // namespace
}  // namespace everstep::elastic::test
