#include <filesystem>

#include <gmock/gmock.h>

#include "tests/launcher/checkpoint/checkpoint_commands.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using storage::StateKind;
using testing::HasSubstr;
using trainer::CutKind;

TEST_F(CheckpointCommands, VerifyFindsOneChangedBit) {
  job_.commit({.step = 1});
  const auto second = job_.commit({.step = 2});
  EXPECT_EQ(run("verify").exit_code, 0);
  EXPECT_EQ(*json("verify").find("good"), Json(true));
  flip_a_bit(job_.path_of_file(second, 1, StateKind::kOptimizer));

  const CommandRun ended = run("verify");
  EXPECT_EQ(ended.exit_code, 65);
  EXPECT_EQ(ended.log, "everstep: 1 of 2 did not verify\n");
  EXPECT_THAT(ended.out, HasSubstr("0001-optimizer-"));
  EXPECT_THAT(ended.out, HasSubstr("good"));
  EXPECT_EQ(*json("verify", {}, 65).find("good"), Json(false));
  EXPECT_EQ(run("verify", {"1"}).exit_code, 0);
  EXPECT_EQ(run("verify", {"2", "--threads=1"}).exit_code, 65);
}

TEST_F(CheckpointCommands, VerifyMissesAFileAndADamagedManifest) {
  const auto first = job_.commit({.step = 1});
  const auto second = job_.commit({.step = 2});
  std::filesystem::remove(job_.path_of_file(second, 0, StateKind::kWeights));
  flip_a_bit(job_.path_of_manifest(first));
  const CommandRun ended = run("verify");
  EXPECT_EQ(ended.exit_code, 65);
  EXPECT_EQ(ended.log, "everstep: 2 of 2 did not verify\n");
}

TEST_F(CheckpointCommands, DiffOfEqualCheckpointsFindsNothing) {
  job_.commit({.step = 1, .seed = 5});
  const CommandRun ended = run("diff", {"1", "HEAD"});
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_EQ(ended.log, "");
  EXPECT_EQ(*json("diff", {"1", "1"}).find("equal"), Json(true));
}

TEST_F(CheckpointCommands, DiffTellsWhatDiffers) {
  job_.commit({.step = 1, .seed = 5, .more_settings = {{"lr", "0.1"}}});
  job_.commit({.step = 2, .kind = CutKind::kLive, .seed = 6, .more_settings = {{"lr", "0.2"}}, .schedule = "1f1b"});
  const CommandRun ended = run("diff", {"1", "2", "--rows=3"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, testing::ContainsRegex("configuration.lr +0.1 +0.2"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("plan +amdp D=2 .* 1f1b D=2"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("weights +29 +29"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("previous +29 +29"));
  EXPECT_THAT(ended.out, HasSubstr("only in B"));
  EXPECT_THAT(ended.out, HasSubstr("more (see --rows)"));
  EXPECT_THAT(ended.log, HasSubstr("everstep: 5 settings and 116 tensors differ"));
  EXPECT_EQ(run("diff", {"1", "2", "--only=settings"}).exit_code, 1);
  const Json found = json("diff", {"1", "2", "--only=tensors"}, 1);
  EXPECT_EQ(*found.find("settings"), Json(Json::array()));
  EXPECT_EQ(*found.find("kinds")->find("optimizer")->find("different"), Json(58));
}

TEST_F(CheckpointCommands, DiffComparesTwoJobs) {
  SmallJob other(path("others"), small_gpt(), "", "second");
  job_.commit({.step = 1, .seed = 5});
  other.commit({.step = 1, .seed = 5, .more_settings = {{"lr", "0.2"}}});
  const std::vector<std::string> both{"1", "1", "--other-dir=" + path("others"), "--other-job=second"};
  EXPECT_EQ(run("diff", both).exit_code, 1);
  std::vector<std::string> tensors = both;
  tensors.emplace_back("--only=tensors");
  EXPECT_EQ(run("diff", tensors).exit_code, 0) << run("diff", tensors).out;
}

TEST_F(CheckpointCommands, DiffDoesNotTrustADamagedFile) {
  job_.commit({.step = 1, .seed = 5});
  const auto second = job_.commit({.step = 2, .seed = 6});
  flip_a_bit(job_.path_of_file(second, 0, StateKind::kWeights));
  EXPECT_EQ(run("diff", {"1", "2"}).exit_code, 65);
}

TEST_F(CheckpointCommands, PruneKeepsTheLastAndThePinned) {
  for (int step = 1; step <= 5; ++step) job_.commit({.step = step});
  ASSERT_EQ(run("pin", {"1"}).exit_code, 0);
  const CommandRun dry = run("prune", {"--keep-last=2", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.log;
  EXPECT_THAT(dry.out, HasSubstr("would remove"));
  EXPECT_EQ(std::get<Json::Array>(json("ls").find("checkpoints")->value()).size(), 5U);

  const Json pruned = json("prune", {"--keep-last=2"});
  EXPECT_EQ(std::get<Json::Array>(pruned.find("removed")->value()).size(), 2U);
  EXPECT_EQ(std::get<Json::Array>(json("ls").find("checkpoints")->value()).size(), 3U);
  EXPECT_EQ(run("verify").exit_code, 0) << run("verify").out;
  ASSERT_EQ(run("unpin", {"1"}).exit_code, 0);
  EXPECT_THAT(run("prune", {"--keep-last=2"}).out, HasSubstr("removed"));
  EXPECT_EQ(std::get<Json::Array>(json("ls").find("checkpoints")->value()).size(), 2U);
}

}  // namespace
}  // namespace everstep::launcher
