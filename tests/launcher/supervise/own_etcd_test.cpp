// The etcd that `everstep train` starts for itself, and what may happen to it.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "launcher/cli/process_table.h"
#include "launcher/rehearse/chaos/small_disk.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class OwnEtcd : public ElasticJob {
 protected:
  static bool is_etcd(pid_t process) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", gone).filename() == "etcd";
  }

  void kill_etcd() {
    const auto children = train().children();
    const auto etcd = std::ranges::find_if(children, is_etcd);
    ASSERT_NE(etcd, children.end());
    send_signal(*etcd, SIGKILL);
  }

  // From now on `everstep train` finds another etcd in its PATH, that runs until break_program() was called.
  void use_breakable_program() {
    std::filesystem::create_directory(path("bin"));
    file("bin/etcd", "#!/bin/sh\nif [ -e " + path("broken") + " ]; then echo worn out; exit 3; fi\n" +
                         "exec /usr/bin/etcd \"$@\"\n");
    std::filesystem::permissions(path("bin/etcd"), std::filesystem::perms::owner_all);
    environment = {"PATH=" + path("bin")};
  }
  void break_program() const { file("broken", ""); }

  // Dies, and cannot be started again.
  void lose_etcd() {
    break_program();
    kill_etcd();
    ASSERT_TRUE(says("event=etcd_died signal=SIGKILL"));
    ASSERT_TRUE(says("event=etcd_not_restarted exit=3 last_words=\"worn out\""));
  }

  // In one line, and with all that was committed before.
  void expect_end_for_want_of_etcd(const std::string& why) {
    const Ended ended = expect_end(69);
    const std::string last = ended.log.substr(ended.log.rfind('\n', ended.log.size() - 2) + 1);
    EXPECT_THAT(last, ContainsRegex("^everstep: ended at step [0-9]+" + why + ": etcd has not answered for [0-9]+ s"));
    EXPECT_THAT(last, ContainsRegex("the newest checkpoint is of step [1-9][0-9]* .*everstep resume --from="));
    EXPECT_THAT(story(), Not(HasSubstr("check failed")));
    expect_proofs();
  }

  std::vector<std::filesystem::path> data_of(const std::string& output) const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path(output))) {
      if (entry.path().filename().string().starts_with("etcd-")) found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(OwnEtcd, ThatDiesIsStartedAgainAndCommitsGoOn) {
  ASSERT_TRUE(starts(2, {"--workers=2", "--steps=300"}));
  const int before = generation();
  kill_etcd();
  ASSERT_TRUE(says("event=etcd_died signal=SIGKILL"));
  ASSERT_TRUE(says("event=etcd_restarted"));
  const Ended ended = expect_end();
  EXPECT_EQ(generation(), before);
  EXPECT_THAT(ended.out, HasSubstr("checkpoint step 300, "));
  EXPECT_THAT(data_of("run"), SizeIs(0));
  expect_proofs();
}

TEST_F(OwnEtcd, ThatStaysAwayEndsTheRunAtTheLimit) {
  use_breakable_program();
  ASSERT_TRUE(starts(2, {"--workers=2", "--lease-ttl=2", "--etcd-outage-limit=4"}));
  lose_etcd();
  expect_end_for_want_of_etcd("");
}

TEST_F(OwnEtcd, ThatIsAwayAtTheEndOfTheRunIsNotWaitedForUntilTheLimit) {
  use_breakable_program();
  ASSERT_TRUE(starts(2, {"--workers=2", "--steps=400", "--etcd-outage-limit=600"}));
  lose_etcd();
  ASSERT_TRUE(reaches(400));
  expect_end_for_want_of_etcd("");
}

TEST_F(OwnEtcd, ThatIsAwayMakesNobodyAskTwiceForTheEnd) {
  use_breakable_program();
  ASSERT_TRUE(starts(2, {"--workers=2", "--restart=on-failure"}));
  lose_etcd();
  train().signal(SIGINT);
  ASSERT_TRUE(says("event=stop_waits"));
  expect_end_for_want_of_etcd(" by SIGINT");
}

TEST_F(OwnEtcd, GoesOnWhenTheDiskHasRoomAgain) {
  constexpr int kMebibytes = 256;  // its log alone takes half of it
  std::filesystem::create_directory(path("disk"));
  const auto disk = chaos::SmallDisk::mount(path("disk"), kMebibytes);
  ASSERT_TRUE(disk.ok()) << disk.error();
  start({"--workers=2", "--checkpoint-dir=" + path("disk/saves")}, "disk/run");
  ASSERT_TRUE(trains_with(2));
  ASSERT_TRUE(saves(1));
  ASSERT_TRUE((*disk)->fill().ok());
  ASSERT_TRUE(says("event=etcd_died"));
  ASSERT_TRUE(says("reason=\"no space left on the disk"));
  (*disk)->make_room();
  ASSERT_TRUE(says("event=etcd_restarted"));
  const int saved = checkpoints();
  ASSERT_TRUE(becomes("another checkpoint", [&] { return checkpoints() > saved; }));
  expect_stop();
}

// Nobody can clean up after a SIGKILL but the one who goes on.
TEST_F(OwnEtcd, OfARunThatWasKilledGoesWithIt) {
  const std::string checkpoints = "--checkpoint-dir=" + path("run/checkpoints");
  ASSERT_TRUE(starts(2, {"--workers=2", checkpoints}));
  train().signal(SIGKILL);
  expect_end(-SIGKILL);
  EXPECT_THAT(data_of("run"), SizeIs(1));
  start({"--workers=2", checkpoints, "--resume", "--steps=" + std::to_string(step() + 20)}, "second");
  expect_end();
  EXPECT_THAT(data_of("run"), SizeIs(0));
  EXPECT_THAT(data_of("second"), SizeIs(0));
}

}  // namespace
}  // namespace everstep::launcher
