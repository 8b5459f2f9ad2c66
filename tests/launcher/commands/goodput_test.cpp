#include <gmock/gmock.h>

#include "storage/json/json.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// What a spot market has.
const std::vector<std::string> kGpus{"--model=gpt2-small", "--precision=bf16", "--window=128"};

CommandRun goodput(std::vector<std::string> args) {
  args.insert(args.begin(), "goodput");
  args.insert(args.end(), kGpus.begin(), kGpus.end());
  return run_command(args);
}

const std::string kP3Trace = std::string(EVERSTEP_SOURCE_DIR) + "/examples/traces/bamboo/p3-trace.csv";

using GoodputCommand = CommandFiles;

TEST_F(GoodputCommand, PrintsARowPerCostAndTheTimeOfEachPlan) {
  const CommandRun run = goodput({"--trace=" + kP3Trace});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_EQ(run.log, "");
  EXPECT_THAT(run.out, HasSubstr("161 changes in 11.4 h, 24.0 workers on average, at most 32\n"));
  EXPECT_THAT(run.out, testing::ContainsRegex("\n +51.6 +0.(79|80)[0-9]+ .*\n +5 +0.98[0-9]+ .*\n +2 +0.99[0-9]+ "));
  EXPECT_THAT(run.out, HasSubstr("\nplan "));
  EXPECT_THAT(run.out, HasSubstr("\nclockwork D="));
}

double number_of(const Json& json, std::string_view name) { return std::get<double>(json.find(name)->value()); }

TEST_F(GoodputCommand, FindsTheKnownGoodputOfTheP3Trace) {
  const CommandRun run = goodput({"--trace=" + kP3Trace, "--cost=51.6,5,2,0", "--json"});
  const auto json = storage::parse_json(run.out);
  ASSERT_TRUE(json.ok()) << json.error();
  const auto& costs = std::get<Json::Array>(json->find("costs")->value());
  ASSERT_EQ(costs.size(), 4U);
  EXPECT_NEAR(number_of(costs[0], "goodput"), 0.80, 0.01);
  EXPECT_NEAR(number_of(costs[1], "goodput"), 0.98, 0.01);
  EXPECT_NEAR(number_of(costs[2], "goodput"), 0.992, 0.01);
  EXPECT_EQ(number_of(costs[3], "goodput"), 1);
  double share = 0;
  for (const Json& plan : std::get<Json::Array>(json->find("plans")->value())) share += number_of(plan, "share");
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST_F(GoodputCommand, WritesAPicture) {
  const CommandRun run = goodput({"--trace=" + kP3Trace, "--svg=" + path("goodput.svg")});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, MatchesRegex("event=file_written path=.*goodput.svg bytes=[0-9]+\n"));
  EXPECT_THAT(text_of("goodput.svg"), HasSubstr("<title id=\"title\">Goodput of gpt2-small on p3-trace.csv</title>"));
}

TEST_F(GoodputCommand, SaysHowManyCountsWereOverruled) {
  const std::string trace = std::string(EVERSTEP_SOURCE_DIR) + "/examples/traces/bamboo/v100x1-east1c.txt";
  EXPECT_THAT(goodput({"--trace=" + trace}).out, HasSubstr("15 counts that a later line"));
}

TEST_F(GoodputCommand, CountsTimeWithoutAPlan) {
  // One worker alone does not fit, so that the second half is idle.
  const std::string trace =
      file("t.csv", "0,add,a\n0,add,b\n0,add,c\n0,add,d\n1000,remove,a\n1000,remove,b\n1000,remove,c\n2000,add,e\n");
  const CommandRun run = run_command(
      {"goodput", "--trace=" + trace, "--model=gpt2-medium", "--precision=bf16", "--memory-gib=6", "--cost=0.5"});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, testing::ContainsRegex("\nno plan +0.000 +0.5000\n"));
}

TEST_F(GoodputCommand, RefusesWhatCannotWorkInOneLine) {
  const std::string trace = "--trace=" + kP3Trace;
  EXPECT_THAT(failure_of({"goodput"}, 64), StartsWith("--trace is missing"));
  EXPECT_THAT(failure_of({"goodput", "--trace=" + path("none.csv")}, 64), StartsWith("cannot read "));
  EXPECT_THAT(failure_of({"goodput", trace, "--cost=5,-1"}, 64), StartsWith("--cost=5,-1: expected numbers"));
  EXPECT_THAT(failure_of({"goodput", trace, "--cost=1,2,3,4,5,6,7,8"}, 64), HasSubstr("at most 7 costs"));
  EXPECT_THAT(failure_of({"goodput", trace, "--model=gpt5"}, 64), HasSubstr("unknown model"));
  EXPECT_THAT(failure_of({"goodput", trace, "--min-workers=33"}, 64), HasSubstr("the trace never has so many workers"));
  EXPECT_THAT(failure_of({"goodput", trace, "--memory-gib=0.001"}, 78), StartsWith("no plan fits"));
  const std::string bad = file("bad.csv", "0,add,a\n1,remove,b\n");
  EXPECT_EQ(failure_of({"goodput", "--trace=" + bad}, 78), bad + ": line 2: node 'b' is not there");
  const std::string large = file("large.txt", "2021-12-11, 11:11:30, 20000\n2021-12-11, 11:11:31, 1\n");
  EXPECT_THAT(failure_of({"goodput", "--trace=" + large}, 78), HasSubstr("20000 workers at once, more than 16384"));
}

}  // namespace
}  // namespace everstep::launcher
