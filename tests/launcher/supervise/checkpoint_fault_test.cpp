#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <gmock/gmock.h>
#include <sys/mount.h>

#include "launcher/job/checkpoint_store.h"
#include "tests/launcher/supervise/checkpoint_program.h"
#include "tests/times_in.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;

class CheckpointFaults : public CheckpointProgram {
 protected:
  // Counts the calls of each thread for itself.
  static std::vector<std::string> strace(const std::string& call, const std::string& fault) {
    return {
        "/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + call + ":" + fault};
  }

  std::vector<std::string> saving(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> options{"--steps=12", "--checkpoint-every=2", "--keep-last=2", "--output=" + path(run)};
    options.insert(options.end(), more.begin(), more.end());
    return with(kTwoStages, options);
  }

  // HEAD is there, and what it names is whole.
  void expect_newest_verifies() const {
    ASSERT_FALSE(head().empty());
    const auto store = open_checkpoint_store({path("saves"), "job", ""}, StoreAccess::kExisting);
    const auto listing = (*store)->catalog().list();
    ASSERT_FALSE(listing->entries.empty());
    EXPECT_TRUE(listing->damaged.empty());
    const Status verified = (*store)->catalog().verify(listing->entries.front());
    EXPECT_TRUE(verified.ok()) << verified.error();
  }
};

// A small file system that is gone with the test.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    EVERSTEP_CHECK(::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=8m") == 0, "mounting a tmpfs needs root");
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }

  void fill() const {
    std::ofstream file(path_ + "/filler", std::ios::binary);
    const std::string piece(4096, 'x');
    while (file.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush()) {
    }
  }
  void clear() const { std::filesystem::remove(path_ + "/filler"); }

 private:
  std::string path_;
};

TEST_F(CheckpointFaults, AFullDiskStopsNoTraining) {
  const SmallDisk disk(path("saves"));
  const auto program = start_until_commit(with(kTwoStages, {"--checkpoint-every=2", "--keep-last=2", kUntilStopped}));
  disk.fill();
  EXPECT_TRUE(goes_on_until(*program, [&] { return times_in(program->log(), "event=checkpoint_failed") >= 3; }));
  expect_newest_verifies();
  const std::string before = head();
  disk.clear();
  EXPECT_TRUE(goes_on_until(*program, [&] { return head() != before; }));
  program->signal(SIGTERM);
  const Ended ended = program->wait(seconds(60));
  EXPECT_EQ(ended.exit_code, 75) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("hint="));
  EXPECT_THAT(ended.out, HasSubstr("checkpoint step "));
  expect_newest_verifies();
}

TEST_F(CheckpointFaults, ADiskThatIsTooSmallIsFoundBeforeTraining) {
  const SmallDisk disk(path("saves"));
  const Ended ended = run_program(with(kTwoStages, {"--keep-last=100"}));
  EXPECT_EQ(ended.exit_code, 64) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("101 more checkpoints need up to"));
}

// Only the committer's thread renames.
TEST_F(CheckpointFaults, AnErrorOfTheDiskCostsOneCheckpoint) {
  const Ended ended = run_program_under(strace("renameat", "error=EIO:when=1"), saving("run"));
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("event=checkpoint_failed"));
  EXPECT_THAT(ended.out, HasSubstr("steps      12"));
  EXPECT_THAT(ended.out, HasSubstr("checkpoint step 12, "));
  EXPECT_THAT(ended.out, HasSubstr(" skipped, 1 failed\n"));
  expect_newest_verifies();
  const Ended resumed = run_program(saving("resumed", {"--resume=auto", "--steps=14"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.log;
}

// Files are synced so: the second one of each thread fails.
TEST_F(CheckpointFaults, ASyncThatFailsStopsNoTraining) {
  const Ended ended = run_program_under(strace("fdatasync", "error=EIO:when=2"), saving("run", {"--steps=150"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("event=checkpoint_failed"));
  EXPECT_THAT(ended.out, HasSubstr("steps      150"));
  expect_newest_verifies();
  const Ended resumed = run_program(saving("resumed", {"--resume=auto", "--steps=160"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.log;
  expect_newest_verifies();
}

struct Kill {
  const char* call;
  int when;
};

class CheckpointKills : public CheckpointFaults, public testing::WithParamInterface<Kill> {};

TEST_P(CheckpointKills, LeaveHeadOldOrNew) {
  const Kill kill = GetParam();
  const Ended killed =
      run_program_under(strace(kill.call, "signal=SIGKILL:when=" + std::to_string(kill.when)), saving("run"));
  EXPECT_THAT(killed.exit_code, AnyOf(Eq(69), Eq(-9))) << killed.log;
  // The first commit may not have been reached.
  if (!head().empty()) expect_newest_verifies();
  const Ended resumed = run_program(saving("resumed", {"--resume=auto"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.log;
  expect_newest_verifies();
  EXPECT_EQ(checkpoints().front().manifest.version.value, 12);
}

INSTANTIATE_TEST_SUITE_P(AtSomeCalls, CheckpointKills,
                         testing::Values(Kill{"fdatasync", 1}, Kill{"fdatasync", 2}, Kill{"fdatasync", 5},
                                         Kill{"fsync", 2}, Kill{"fsync", 5}, Kill{"renameat", 1}, Kill{"renameat", 2},
                                         Kill{"unlinkat", 1}, Kill{"unlinkat", 4}),
                         [](const testing::TestParamInfo<Kill>& one) {
                           return std::string(one.param.call) + std::to_string(one.param.when);
                         });

}  // namespace
}  // namespace everstep::launcher
