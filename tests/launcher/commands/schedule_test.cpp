#include "scheduler/schedule.h"

#include <gmock/gmock.h>

#include "storage/json/json.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using ScheduleCommand = CommandFiles;

TEST_F(ScheduleCommand, DrawsTheTimelineAndSaysWhatItIsWorth) {
  const CommandRun run = run_command({"schedule", "--depth=4", "--window=8"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.log, "");
  EXPECT_EQ(run.out,
            "t    0         1         2         3         4         5\n"
            "dev0 0.12.b3aB4dA5cD6fC7eF0hEH1gGU2b3aB4dA5cD6fC7eFEhH.gGU\n"
            "dev1 .0.1b2aB3dA4cD5fC6eF7hEH0gG1Ub2aB3dA4cD5fC6eF7hEHgG.U\n"
            "dev2 1.03.a2bA5cB4dC7eD6fE1gFG0hHU3a2bA5cB4dC7eD6fEFgG.hHU\n"
            "dev3 .1.0a3bA2cB5dC4eD7fE6gFG1hH0Ua3bA2cB5dC4eD7fE6gFGhH.U\n"
            "\n"
            "busy        0.906 of 53 ticks; in steady state 0.960 of 25 ticks per window\n"
            "in flight   at most 2 minibatches at stage 0, 3 on a device\n"
            "mismatched  minibatches per window: 0 2\n");
}

TEST_F(ScheduleCommand, PrintsOpsThatCanBeReadBack) {
  const CommandRun run = run_command({"schedule", "--schedule=interleaved", "--depth=4", "--chunks=3", "--ops"});
  const auto schedule = scheduler::parse_schedule(run.out);
  ASSERT_TRUE(schedule.ok()) << schedule.error();
  EXPECT_EQ(schedule->request.window, 16);
  EXPECT_EQ(schedule->placement.stages(), 12);
}

TEST_F(ScheduleCommand, DrawsClockworkWithItsPipelinesLagAndCosts) {
  const CommandRun run =
      run_command({"schedule", "--schedule=clockwork", "--depth=4", "--pipelines=1", "--lag=1", "--window=8",
                   "--forward=2", "--backward=5", "--weights=2", "--update=0", "--json"});
  const auto json = storage::parse_json(run.out);
  ASSERT_TRUE(json.ok()) << json.error();
  EXPECT_EQ(*json->find("pipelines"), storage::Json(1));
  EXPECT_EQ(*json->find("lag"), storage::Json(1));
  const CommandRun drawn = run_command({"schedule", "--schedule=clockwork", "--depth=2", "--window=4"});
  EXPECT_THAT(drawn.out, HasSubstr("dev0 01.a2bA3cB4dCDU5e6fE7gFGhHU\n"));
}

TEST_F(ScheduleCommand, DrawsProvisionalStepsAsOneWishesOrSays) {
  const auto left_out = [](const std::vector<std::string>& more) {
    std::vector<std::string> args{"schedule", "--depth=3", "--window=12", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const auto json = storage::parse_json(run_command(args).out);
    const storage::Json* found = json->find("provisional");
    return found == nullptr ? storage::Json(0) : *found;
  };
  EXPECT_EQ(left_out({}), storage::Json(0));
  EXPECT_EQ(left_out({"--provisional=on"}), storage::Json(2));
  EXPECT_EQ(left_out({"--provisional=auto"}), storage::Json(2));
  EXPECT_EQ(left_out({"--provisional=4"}), storage::Json(4));
  EXPECT_EQ(left_out({"--provisional=auto", "--schedule=1f1b"}), storage::Json(0));
  const CommandRun drawn = run_command({"schedule", "--depth=4", "--window=12", "--provisional=on"});
  EXPECT_THAT(drawn.out, HasSubstr("\nprovisional P copies the sum of 10 of 12 minibatches, T takes the trial step"));
  const CommandRun ops = run_command({"schedule", "--depth=4", "--window=12", "--provisional=on", "--ops"});
  EXPECT_EQ(scheduler::parse_schedule(ops.out)->request.provisional, 1);
}

TEST_F(ScheduleCommand, PrintsItsFiguresAsJson) {
  const CommandRun run =
      run_command({"schedule", "--schedule=amdp", "--depth=8", "--update=0", "--stop-after-rounds=3", "--json"});
  const auto json = storage::parse_json(run.out);
  ASSERT_TRUE(json.ok()) << json.error();
  EXPECT_EQ(*json->find("steady_busy"), storage::Json(0.96));
  EXPECT_EQ(*json->find("steady_window_ticks"), storage::Json(100));
  EXPECT_EQ(*json->find("remaining_in_window"), storage::Json(8));
}

TEST_F(ScheduleCommand, WritesThePictureAndTheTrace) {
  const CommandRun run = run_command({"schedule", "--schedule=amdp", "--depth=4", "--svg=" + path("a.svg"),
                                      "--trace=" + path("a.json"), "--capture-every=1"});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, StartsWith("t    0 "));
  EXPECT_THAT(run.log, HasSubstr("event=file_written path=" + path("a.svg") + " bytes="));
  EXPECT_THAT(text_of("a.svg"), StartsWith("<svg "));
  EXPECT_THAT(text_of("a.svg"), HasSubstr("in steady state busy 90.6 %"));
  EXPECT_TRUE(storage::parse_json(text_of("a.json")).ok());
}

TEST_F(ScheduleCommand, ComparesAllKinds) {
  const CommandRun run = run_command({"schedule", "--compare"});
  EXPECT_THAT(run.out, HasSubstr("| amdp | 0.923 | 0.923 | 0.960 | 0.960 | 0.980 | 0.980 |\n"));
  EXPECT_THAT(run.out, HasSubstr("| 1f1b | 0.571 | 0.842 | 0.533 | 0.821 | 0.516 | 0.810 |\n"));
  EXPECT_THAT(run.out, HasSubstr("| interleaved | 0.727 | 0.914 | 0.696 | 0.901 | 0.681 | 0.895 |\n"));
}

TEST_F(ScheduleCommand, UsesFewColumnsForLongTimes) {
  const CommandRun run = run_command(
      {"schedule", "--schedule=1f1b", "--depth=1", "--window=1", "--windows=1", "--forward=1000", "--backward=3001"});
  EXPECT_THAT(run.out, HasSubstr("dev0 0000aaaaaaaaaaaa\n"));
}

TEST_F(ScheduleCommand, RefusesWhatCannotWorkInOneLine) {
  const auto refused = [](const std::vector<std::string>& options) {
    std::vector<std::string> args{"schedule"};
    args.insert(args.end(), options.begin(), options.end());
    return failure_of(args, 64);
  };
  EXPECT_THAT(refused({"--depth=0"}), StartsWith("--depth=0: expected an integer from 1"));
  EXPECT_THAT(refused({"--schedule=amdp", "--depth=6"}),
              StartsWith("depth 6 with schedule amdp: AMDP needs a depth of 2 or a multiple of 4"));
  EXPECT_THAT(refused({"--window=4"}), StartsWith("a window of 4 minibatches is too small for 8 devices"));
  EXPECT_THAT(refused({"--schedule=gpip"}), HasSubstr("did you mean gpipe?"));
  EXPECT_THAT(refused({"--depth=4000"}), HasSubstr("ops, more than 2000000"));
  EXPECT_THAT(refused({"--first-minibatch=33"}), StartsWith("the first minibatch is 33, but a window has 32"));
  EXPECT_THAT(refused({"--provisional=maybe"}), StartsWith("--provisional=maybe: expected off, auto, on or a number"));
  EXPECT_THAT(refused({"--provisional=9"}), HasSubstr("9 super-rounds of a window is not possible (hint: between"));
  EXPECT_THAT(refused({"--schedule=1f1b", "--provisional=on"}), StartsWith("a provisional step needs windows"));
  EXPECT_THAT(refused({"--ops", "--json"}), HasSubstr("cannot be combined with --json"));
  EXPECT_THAT(refused({"--compare", "--svg=x.svg"}), HasSubstr("cannot be combined with --compare"));
  EXPECT_THAT(refused({"--svg=x", "--trace=x"}), HasSubstr("is the file that --svg names"));
  EXPECT_THAT(refused({"--svg="}), HasSubstr("expected a path"));
  EXPECT_THAT(refused({"--svg=/no/such/place.svg"}), StartsWith("cannot write /no/such/place.svg"));
  EXPECT_THAT(failure_of({"schedule"}, 78, {{"EVERSTEP_SCHEDULE", "amdp"}, {"EVERSTEP_DEPTH", "6"}}),
              StartsWith("depth 6 with schedule amdp"));
}

}  // namespace
}  // namespace everstep::launcher
