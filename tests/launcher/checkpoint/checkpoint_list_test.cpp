#include <ctime>
#include <sstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/launcher/checkpoint/checkpoint_commands.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using testing::HasSubstr;
using testing::Not;
using trainer::CutKind;

void set_time(const std::string& path, std::time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST_F(CheckpointCommands, ListIsATableOfWhatThereIs) {
  const auto first = job_.commit({.step = 1, .kind = CutKind::kFlush, .loss = 3.25});
  const auto second = job_.commit({.step = 2, .kind = CutKind::kLive, .loss = 2.5});
  const auto third = job_.commit({.step = 2, .kind = CutKind::kInWindow, .loss = 2.125});
  set_time(job_.path_of_manifest(first), 1'700'000'000);
  set_time(job_.path_of_manifest(second), 1'700'000'060);
  set_time(job_.path_of_manifest(third), 1'700'000'120);
  ASSERT_EQ(run("pin", {"1"}).exit_code, 0);
  const auto size = [](const storage::CatalogEntry& entry) {
    return std::to_string(entry.manifest.bytes() / 1024);  // the table has one more digit
  };
  const CommandRun ended = run("ls");
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_EQ(ended.log, "");
  std::istringstream lines(ended.out);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 6U) << ended.out;
  EXPECT_THAT(all[0], testing::MatchesRegex("step +position +kind +written \\(UTC\\) +size +loss +notes +name"));
  EXPECT_THAT(all[2], testing::MatchesRegex(" +2 +10 +in-window +2023-11-14 22:15:20 +" + size(third) +
                                            "\\.[0-9] KiB +2\\.1250 +HEAD +g1-p10-00000abc"));
  EXPECT_THAT(all[3], testing::MatchesRegex(" +2 +8 +live +2023-11-14 22:14:20 +" + size(second) +
                                            "\\.[0-9] KiB +2\\.5000 +g1-p8-00000abc"));
  EXPECT_THAT(all[4], testing::MatchesRegex(" +1 +4 +flush +2023-11-14 22:13:20 +" + size(first) +
                                            "\\.[0-9] KiB +3\\.2500 +pinned +g1-p4-00000abc"));
  EXPECT_EQ(all[5], "authenticity not checked: there is no --secret-file");
}

TEST_F(CheckpointCommands, ListForProgramsHasTheSameFacts) {
  job_.commit({.step = 1});
  job_.commit({.step = 2, .kind = CutKind::kLive, .loss = 1.5});
  const Json listed = json("ls");
  ASSERT_NE(listed.find("checkpoints"), nullptr);
  const auto& rows = std::get<Json::Array>(listed.find("checkpoints")->value());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(*rows[0].find("step"), Json(2));
  EXPECT_EQ(*rows[0].find("position"), Json(8));
  EXPECT_EQ(*rows[0].find("kind"), Json("live"));
  EXPECT_EQ(*rows[0].find("loss"), Json(1.5));
  EXPECT_EQ(*rows[0].find("head"), Json(true));
  EXPECT_EQ(*rows[1].find("head"), Json(false));
  EXPECT_EQ(*rows[1].find("lineage"), Json("1122334455667788"));
  EXPECT_EQ(*listed.find("authenticity"), Json("not checked"));
  EXPECT_EQ(*listed.find("damaged"), Json(Json::array()));
}

TEST_F(CheckpointCommands, ListNamesDamagedOnesAndWhy) {
  const auto first = job_.commit({.step = 1});
  job_.commit({.step = 2});
  flip_a_bit(job_.path_of_manifest(first));
  const CommandRun ended = run("ls");
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("damaged: "));
  EXPECT_THAT(ended.out, HasSubstr("g1-p4-00000abc: "));
  const Json listed = json("ls");
  EXPECT_EQ(std::get<Json::Array>(listed.find("damaged")->value()).size(), 1U);
}

TEST_F(CheckpointCommands, AJobWithoutCheckpointsHasNone) {
  EXPECT_THAT(run("ls").out, HasSubstr("no checkpoints\n"));
  EXPECT_THAT(refusal("show", {}, 64), HasSubstr("there is no checkpoint"));
  EXPECT_EQ(run("verify").exit_code, 0);
}

TEST_F(CheckpointCommands, SaysWhatIsWrongWithItsArguments) {
  job_.commit({.step = 1});
  EXPECT_THAT(failure_of({"checkpoint", "ls"}, 64), HasSubstr("--checkpoint-dir is missing"));
  EXPECT_THAT(failure_of({"checkpoint", "ls", "--checkpoint-dir=" + path("none")}, 64), HasSubstr("none"));
  EXPECT_THAT(refusal("ls", {"--job=other"}, 64), HasSubstr("other"));
  EXPECT_THAT(refusal("ls", {"--job=jobb"}, 64), HasSubstr("did you mean job?"));
  EXPECT_THAT(refusal("ls", {"--job=../x"}, 64), HasSubstr("name of the job"));
  EXPECT_THAT(refusal("ls", {"stray"}, 64), HasSubstr("unexpected argument 'stray'"));
  EXPECT_THAT(refusal("show", {"7"}, 64), HasSubstr("no checkpoint at step 7 (hint: there are those of steps 1)"));
  EXPECT_THAT(refusal("show", {"g9-p1-00000000"}, 64), HasSubstr("no checkpoint 'g9-p1-00000000'"));
  EXPECT_THAT(refusal("show", {"1", "2"}, 64), HasSubstr("unexpected argument '2'"));
  EXPECT_THAT(refusal("diff", {"1"}, 64), HasSubstr("A B is missing"));
  EXPECT_THAT(refusal("pin", {}, 64), HasSubstr("CHECKPOINT is missing"));
  EXPECT_THAT(refusal("prune", {"--keep-last=1"}, 64), HasSubstr("from 2"));
}

TEST_F(CheckpointCommands, ShowHasPlanFilesAndSettings) {
  job_.commit({.step = 3, .kind = CutKind::kLive, .more_settings = {{"lr", "0.001"}, {"min-lr", ""}}});
  const CommandRun ended = run("show", {"3"});
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("checkpoint        g1-p12-00000abc\n"));
  EXPECT_THAT(ended.out, HasSubstr("step              3, 3 applied\n"));
  EXPECT_THAT(ended.out, HasSubstr("plan              amdp D=2 W=1 M=4, cuts 0 2 4\n"));
  EXPECT_THAT(ended.out, HasSubstr("in 12 files\n"));
  EXPECT_THAT(ended.out, HasSubstr("0003-previous-"));
  EXPECT_THAT(ended.out, HasSubstr("  lr = 0.001\n"));
  EXPECT_THAT(ended.out, Not(HasSubstr("min-lr")));
  EXPECT_EQ(run("show").out, run("show", {"HEAD"}).out);
  EXPECT_EQ(run("show").out, run("show", {"g1-p12-00000abc"}).out);

  const Json shown = json("show");
  EXPECT_EQ(std::get<Json::Array>(shown.find("files")->value()).size(), 12U);
  EXPECT_EQ(*shown.find("configuration")->find("lr"), Json("0.001"));
  EXPECT_EQ(*shown.find("plan")->find("depth"), Json(2));
}

class SealedCheckpoints : public CommandFiles {};

TEST_F(SealedCheckpoints, AreCheckedWithTheSecretOnly) {
  const std::string secret = "0123456789abcdef0123";
  SmallJob job(path("checkpoints"), small_gpt(), secret);
  job.commit({.step = 1});
  const auto run = [&](const std::string& option) {
    return run_command({"checkpoint", "verify", "--checkpoint-dir=" + path("checkpoints"), option});
  };
  const std::string right = file("right", secret + "\n");
  const std::string wrong = file("wrong", "another secret of some length\n");
  for (const std::string& name : {right, wrong}) ASSERT_EQ(::chmod(name.c_str(), 0600), 0);
  EXPECT_EQ(run("--secret-file=" + right).exit_code, 0) << run("--secret-file=" + right).log;
  EXPECT_THAT(run("--secret-file=" + right).out, HasSubstr("authenticity checked\n"));
  EXPECT_EQ(run("--secret-file=" + wrong).exit_code, 65);
  EXPECT_THAT(run("--job=job").out, HasSubstr("authenticity not checked"));

  ASSERT_EQ(::chmod(right.c_str(), 0640), 0);
  EXPECT_EQ(run("--secret-file=" + right).exit_code, 64);
  EXPECT_THAT(run("--secret-file=" + right).log, HasSubstr("chmod 600"));
  const std::string small = file("small", "short");
  ASSERT_EQ(::chmod(small.c_str(), 0600), 0);
  EXPECT_THAT(run("--secret-file=" + small).log, HasSubstr("5 bytes"));
}

TEST(CheckpointHelp, EveryPartHasHelpWithAnExample) {
  const CommandRun group = run_command({"checkpoint", "--help"});
  EXPECT_EQ(group.exit_code, 0);
  for (const std::string part : {"ls", "show", "verify", "diff", "pin", "unpin", "prune", "export", "import"}) {
    EXPECT_THAT(group.out, HasSubstr("\n  checkpoint " + part + " "));
    const CommandRun help = run_command({"checkpoint", part, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("usage: everstep checkpoint " + part + " "));
    EXPECT_THAT(help.out, HasSubstr("  everstep checkpoint " + part + " "));
  }
  EXPECT_THAT(failure_of({"checkpoint", "lst"}, 64), HasSubstr("unknown command 'checkpoint lst'"));
  EXPECT_THAT(failure_of({"checkpoint"}, 64), HasSubstr("everstep checkpoint --help lists the commands"));
}

}  // namespace
}  // namespace everstep::launcher
