// Whole jobs whose tensors travel over the emulated NCCL: real workers, each with a fake accelerator of eight hardware
// queues, or as many as a GPU can have, that ends its process at the first mistake, and a real etcd.
#include <csignal>

#include <gmock/gmock.h>

#include "tests/launcher/supervise/device_job_ends.h"
#include "tests/send_signal.h"
#include "tests/times_in.h"

namespace everstep::launcher {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class NcclJob : public DeviceJobEnds {
 protected:
  testing::AssertionResult starts_over_nccl(int workers, const Words& more, int hardware_queues = 8) {
    environment = {"FAKE_QUEUES=" + std::to_string(hardware_queues)};
    Words all{"--device=fake", "--transport=nccl", "--workers=" + std::to_string(workers)};
    all.insert(all.end(), more.begin(), more.end());
    return starts(workers, all);
  }

  void expect_links_of_all(int peers) const {
    EXPECT_THAT(story(), HasSubstr("peers_over_nccl=" + std::to_string(peers) + " peers_over_host=0"));
  }
};

TEST_F(NcclJob, OutlivesAWorkerThatDies) {
  ASSERT_TRUE(starts_over_nccl(3, {"--shapes=3=3x1,2=2x1"}));
  expect_links_of_all(2);
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker((leader() + 1) % 3), SIGKILL, 2));
  expect_links_of_all(1);
  expect_good_end();
}

// Kernels of the others wait for it, and its sockets stay open. When it wakes up it is a new worker.
TEST_F(NcclJob, OutlivesAWorkerThatHangs) {
  ASSERT_TRUE(starts_over_nccl(3, {"--shapes=3=3x1,2=2x1", "--lease-ttl=2"}));
  const pid_t sleeper = worker((leader() + 1) % 3);
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(sleeper, SIGSTOP, 2));
  const int without = generation();
  ASSERT_EQ(send_signal(sleeper, SIGCONT), 0);
  ASSERT_TRUE(trains_with(3, without));
  ASSERT_TRUE(goes_on());
  expect_good_end();
}

// With two groups: the one that lost nobody keeps its sums.
TEST_F(NcclJob, OutlivesItsLeader) {
  ASSERT_TRUE(starts_over_nccl(4, {"--shapes=4=2x2,3=3x1"}));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker(leader()), SIGKILL, 3));
  expect_good_end();
}

TEST_F(NcclJob, LetsAWorkerLeaveAndTakesOneThatJoins) {
  ASSERT_TRUE(starts_over_nccl(3, {"--shapes=3=3x1,2=2x1"}, 32));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker(1), SIGTERM, 2));
  EXPECT_EQ(generations().back().origin, "memory");
  const int between = generation();
  add_worker("another");
  ASSERT_TRUE(trains_with(3, between));
  ASSERT_TRUE(goes_on());
  expect_good_end();
}

TEST_F(NcclJob, GoesOnWhenAllIsLost) {
  ASSERT_TRUE(starts_over_nccl(2, {"--shapes=2=2x1"}));
  expect_goes_on_when_all_is_lost({"--workers=2", "--device=fake", "--transport=nccl", "--shapes=2=2x1"});
}

// And NCCL again without it.
TEST_F(NcclJob, UsesTheHostsWireAsLongAsOneWorkerHasNone) {
  environment = {"FAKE_QUEUES=8"};
  ASSERT_TRUE(starts(2, {"--device=fake", "--workers=2", "--shapes=2=2x1,3=3x1"}));
  expect_links_of_all(1);
  const int before = generation();
  RunningProgram& without = add_worker("without", {}, {"env", "FAKE_NCCL=22809"});
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on());
  EXPECT_THAT(story(), AllOf(HasSubstr("event=transport_chosen transport=host reason=\"NCCL is too old"),
                             ContainsRegex("event=without_nccl generation=[0-9]+ worker=[0-9] transport=host "
                                           "reason=\"NCCL is too old: it has version 22809"),
                             HasSubstr("peers_over_nccl=0 peers_over_host=2"), Not(HasSubstr("peers_over_host=1"))));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(without.pid(), SIGTERM, 2));
  EXPECT_TRUE(becomes("NCCL again", [&] { return times_in(story(), "peers_over_nccl=1 peers_over_host=0") >= 4; }));
  expect_good_end();
}

TEST_F(NcclJob, RefusesAWorkerThatHasNoneIfItIsAskedFor) {
  ASSERT_TRUE(starts_over_nccl(2, {"--shapes=2=2x1"}));
  const Ended without = run_program({"worker", worker_config(), "--job=job"}, {"FAKE_NCCL=0"});
  EXPECT_THAT(without.log, HasSubstr("this build has no NCCL for devices of the kind fake"));
  const Ended otherwise = run_program({"worker", worker_config(), "--job=job", "--transport=host"});
  EXPECT_EQ(otherwise.exit_code, 64) << otherwise.log;
  EXPECT_THAT(otherwise.log, HasSubstr("--transport (was nccl, is host)"));
  expect_stop();
}

TEST_F(NcclJob, IsRefusedWhereItCannotBe) {
  const auto refused = [this](const Words& more, const Words& variables) {
    const Ended ended = run_program(train_words(more), variables);
    EXPECT_EQ(ended.exit_code, 64) << ended.log;
    EXPECT_EQ(ended.log.find('\n'), ended.log.size() - 1) << ended.log;
    return ended.log;
  };
  EXPECT_THAT(refused({"--device=fake", "--transport=nccl"}, {"FAKE_NCCL=0"}),
              HasSubstr("--transport=nccl: this build has no NCCL"));
  EXPECT_THAT(refused({"--device=fake", "--transport=nccl"}, {"FAKE_NCCL=22809"}),
              HasSubstr("--transport=nccl: NCCL is too old: it has version 22809"));
  EXPECT_THAT(refused({"--transport=nccl"}, {}), HasSubstr("this job computes on the CPU"));
  EXPECT_THAT(refused({"--device=fake", "--transport=tcp"}, {}), HasSubstr("--transport=tcp: is no transport"));
  const Ended shown = run_program(train_words({"--device=cuda", "--print-config"}));
  EXPECT_THAT(shown.out, AllOf(HasSubstr("# workers have CUDA_DEVICE_MAX_CONNECTIONS=32, unless it is set\n"),
                               HasSubstr("# workers have NCCL_SOCKET_IFNAME==lo, unless it is set\n")));
}

}  // namespace
}  // namespace everstep::launcher
