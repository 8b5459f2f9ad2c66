// Whole jobs on a device: real workers and a real etcd, on fake accelerators that end a process at its first mistake.
#include <csignal>

#include <gmock/gmock.h>

#include "tests/launcher/supervise/device_job_ends.h"

namespace everstep::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DeviceJob : public DeviceJobEnds {
 protected:
  testing::AssertionResult starts_on_device(int workers, Words more = {}) {
    more.emplace_back("--device=fake");
    more.emplace_back("--transport=host");
    more.push_back("--workers=" + std::to_string(workers));
    return starts(workers, more);
  }

  // One line and nothing else.
  void expect_refusal(const Words& more, int exit_code, const testing::Matcher<std::string>& line,
                      const Words& variables = {}) const {
    const Ended ended = run_program(train_words(more), variables);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.log;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.log.find('\n'), ended.log.size() - 1) << ended.log;
    EXPECT_THAT(ended.log, line);
  }
};

TEST_F(DeviceJob, OutlivesAWorkerThatDies) {
  ASSERT_TRUE(starts_on_device(3, {"--shapes=3=3x1,2=2x1"}));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker((leader() + 1) % 3), SIGKILL, 2));
  expect_good_end();
}

TEST_F(DeviceJob, OutlivesItsLeader) {
  ASSERT_TRUE(starts_on_device(4, {"--shapes=4=2x2,3=3x1"}));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker(leader()), SIGKILL, 3));
  expect_good_end();
}

TEST_F(DeviceJob, LetsAWorkerLeaveInOrder) {
  ASSERT_TRUE(starts_on_device(3, {"--shapes=3=3x1,2=2x1"}));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(worker(1), SIGTERM, 2));
  EXPECT_EQ(generations().back().origin, "memory");
  expect_good_end();
}

// It is not told on what device the job computes.
TEST_F(DeviceJob, TakesAWorkerThatJoins) {
  ASSERT_TRUE(starts_on_device(3, {"--shapes=3=3x1,4=4x1"}));
  const int before = generation();
  add_worker("fourth");
  ASSERT_TRUE(trains_with(4, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

TEST_F(DeviceJob, GivesWorkersThatPeopleStartTheDevicesThatAreFree) {
  const std::string devices = "FAKE_DEVICES=4";
  environment = {devices};
  ASSERT_TRUE(starts_on_device(2, {"--shapes=2=2x1,3=3x1,4=4x1"}));
  const auto has_device = [&](const std::string& worker, const std::string& device) {
    return becomes(worker + " on " + device, [&] {
      const auto log = read_file(path("run/worker-" + worker + ".log"), std::size_t{1} << 24);
      return log && log->find("event=device device=" + device + " ") != std::string::npos;
    });
  };
  ASSERT_TRUE(has_device("1", "fake:1"));
  RunningProgram& third = add_worker("third", {}, {"env", devices});
  ASSERT_TRUE(has_device("third", "fake:2"));
  add_worker("fourth", {}, {"env", devices});
  ASSERT_TRUE(has_device("fourth", "fake:3"));
  ASSERT_TRUE(trains_with(4, 1));
  const Ended refused = run_program({"worker", worker_config(), "--job=job"}, {devices});
  EXPECT_EQ(refused.exit_code, 69) << refused.log;
  EXPECT_THAT(refused.log, HasSubstr("each device of the kind fake has a worker already, and there are 4"));
  ASSERT_NO_FATAL_FAILURE(expect_others_go_on(third.pid(), SIGKILL, 3));
  add_worker("fifth", {}, {"env", devices});
  ASSERT_TRUE(has_device("fifth", "fake:2"));
  add_worker("twin", {"--device=fake:0"}, {"env", devices});
  ASSERT_TRUE(has_device("twin", "fake:0"));
  expect_good_end();
}

// Its process lives, and answers; only what it has given to its device is never done.
TEST_F(DeviceJob, GoesOnWithoutAWorkerWhoseDeviceHangs) {
  environment = {"FAKE_STUCK=" + path("stuck-")};
  ASSERT_TRUE(starts_on_device(3, {"--shapes=3=3x1,2=2x1", "--hang-limit=3", "--lease-ttl=2"}));
  const int number = (leader() + 1) % 3;
  const int before = generation();
  file("stuck-" + std::to_string(worker(number)), "");
  ASSERT_TRUE(trains_with(2, before));
  ASSERT_TRUE(goes_on());
  EXPECT_TRUE(becomes("its end", [&] {
    const auto log = read_file(path("run/worker-" + std::to_string(number) + ".log"), std::size_t{1} << 24);
    return log && log->find("event=hung reason=\"an op does not end\"") != std::string::npos;
  }));
  expect_good_end();
}

TEST_F(DeviceJob, RefusesAWorkerOnAnotherKindOfDevice) {
  ASSERT_TRUE(starts_on_device(2, {"--shapes=2=2x1"}));
  const Ended ended = run_program({"worker", worker_config(), "--job=job", "--device=cpu"});
  EXPECT_EQ(ended.exit_code, 64) << ended.log;
  EXPECT_THAT(ended.log, AllOf(HasSubstr("--device (was fake, is cpu)"), HasSubstr("one kind of device")));
  expect_stop();
}

// Checkpoints know nothing of devices but where they came from.
TEST_F(DeviceJob, GoesOnWithoutItsDevicesWhenAllIsLost) {
  ASSERT_TRUE(starts_on_device(2, {"--shapes=2=2x1"}));
  expect_goes_on_when_all_is_lost({"--workers=2", "--device=cpu", "--shapes=2=2x1"});
}

TEST_F(DeviceJob, IsReplayedOnItsDevice) {
  ASSERT_TRUE(starts_on_device(2, {"--shapes=2=2x1"}));
  ASSERT_TRUE(saves(step() + 1));
  expect_stop();
  const Ended there = run_program({"replay", path("saves"), "--device=fake:3"});
  EXPECT_EQ(there.exit_code, 0) << there.log;
  EXPECT_THAT(there.out, HasSubstr("all bits equal"));
  const Ended any = run_program({"replay", path("saves"), "--device=auto"});
  EXPECT_EQ(any.exit_code, 0) << any.log;
  EXPECT_THAT(any.out, HasSubstr("all bits equal"));
  EXPECT_THAT(any.log, HasSubstr("event=device_chosen device=cpu reason=\"this build has no CUDA"));
  for (const auto& [device, line] :
       {std::pair("fake:9", "there is no device fake:9: this host has 8 of them"), std::pair("cuda:x", "is no device"),
        std::pair("cuda", "this build has no CUDA")}) {
    const Ended ended = run_program({"replay", path("saves"), "--device=" + std::string(device)});
    EXPECT_EQ(ended.exit_code, 64) << ended.log;
    EXPECT_THAT(ended.log, HasSubstr(line));
    EXPECT_EQ(ended.log.find('\n'), ended.log.size() - 1) << ended.log;
  }
}

TEST_F(DeviceJob, TellsItsCheckpointsWhatItWasComputedWith) {
  ASSERT_TRUE(starts(2, {"--device=fake", "--workers=2", "--shapes=2=2x1"}));
  ASSERT_TRUE(saves(step() + 1));
  expect_stop();
  const Ended shown = run_program({"checkpoint", "show", "--checkpoint-dir=" + path("saves")});
  EXPECT_EQ(shown.exit_code, 0) << shown.log;
  EXPECT_THAT(shown.out, HasSubstr("nccl = 23007"));
  EXPECT_THAT(shown.out, HasSubstr("device-name = fake accelerator"));
}

// The window is tried again on the device; the same minibatch spoils it again, and is left out.
TEST_F(DeviceJob, LeavesAMinibatchOutThatIsNeverFinite) {
  constexpr int kBad = 10 * 8 + 7;
  environment = {"TEST_NAN_AT=" + std::to_string(kBad) + ":3:forward"};
  start({"--device=fake", "--workers=2", "--shapes=2=2x1"});
  ASSERT_TRUE(says("minibatch " + std::to_string(kBad) + ") again: it is left out"));
  ASSERT_TRUE(says("event=window_tried_again window=10 outcome=applied"));
  EXPECT_TRUE(goes_on());
  for (const GenerationLine& one : generations()) EXPECT_EQ(one.workers, 2) << "nobody is to blame";
  expect_stop();
  expect_proofs();
}

// A worker whose device spoils a gradient once.
TEST_F(DeviceJob, ShutsOutAWorkerThatSpoilsAWindowOnce) {
  environment = {"TEST_NAN_AT=" + std::to_string(10 * 8 + 7) + ":3:backward:" + path("spoilt")};
  start({"--device=fake", "--workers=3", "--shapes=3=3x1,2=2x1"});
  ASSERT_TRUE(says("fate=evicted"));
  ASSERT_TRUE(trains_with(2, 2));
  EXPECT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

TEST_F(DeviceJob, RefusesWhatTheHostDoesNotHave) {
  expect_refusal({"--device=cuda"}, 64, AllOf(HasSubstr("this build has no CUDA"), HasSubstr("scripts/setup --cuda")));
  expect_refusal({"--device=gpu"}, 64,
                 AllOf(HasSubstr("no kind of device 'gpu'"), HasSubstr("cpu, cuda, cuda:N or auto")));
  expect_refusal({"--device=cuda:x"}, 64, AllOf(HasSubstr("--device=cuda:x: is no device"), HasSubstr("cuda:N")));
  expect_refusal({"--device=fake"}, 64, HasSubstr("no device of the kind fake was found"), {"FAKE_DEVICES=0"});
  expect_refusal({"--device=fake", "--workers=3"}, 64,
                 AllOf(HasSubstr("this host has 2 devices of the kind fake"), HasSubstr("--workers=auto")),
                 {"FAKE_DEVICES=2"});
  expect_refusal({"--device=fake:1", "--workers=2"}, 64, HasSubstr("is one device, and there are 2 workers"));
  expect_refusal({"--device=fake:9", "--workers=1"}, 64, HasSubstr("this host has 8 devices of the kind fake"));
  expect_refusal({"--device=fake", "--workers=2", "--shapes=2=2x1", "--hidden=256"}, 78, HasSubstr("no plan fits into"),
                 {"FAKE_DEVICE_MIB=1"});
}

}  // namespace
}  // namespace everstep::launcher
