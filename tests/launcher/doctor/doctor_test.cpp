// `everstep doctor` with real workers, on the CPU and on fake accelerators, well and not.
#include "launcher/doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include <gmock/gmock.h>

#include "launcher/cli/process_table.h"
#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr seconds kPatience{200};
// But for speed, which depends on what else the machine does.
constexpr const char* kSteady = "--only=operators,blocks,links,reproducible,memory,recovery";

struct SeenCheck {
  std::string name;
  std::string result;
  std::string figure;
  std::string reason;
};

class Doctor : public CommandFiles {
 protected:
  Doctor() { std::filesystem::create_directories(path("tmp")); }

  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("TMPDIR=" + path("tmp"));
    return more;
  }

  Ended run(std::vector<std::string> args, const std::vector<std::string>& more = {}) const {
    args.insert(args.begin(), "doctor");
    Ended ended = RunningProgram(args, environment(more)).wait(kPatience);
    EXPECT_EQ(processes_naming(path("tmp")), std::vector<pid_t>());
    return ended;
  }

  bool has_left_nothing() const { return std::filesystem::is_empty(path("tmp")); }

  static std::vector<SeenCheck> checks_of(const Ended& ended) {
    const auto json = storage::parse_json(ended.out);
    EXPECT_TRUE(json.ok()) << ended.out << ended.log;
    if (!json) return {};
    std::vector<SeenCheck> seen;
    const auto checks = storage::JsonReader(*json).elements_at("checks").value();
    for (const auto& check : checks) {
      seen.push_back({check.text_at("name").value(), check.text_at("result").value(), check.text_at("figure").value(),
                      check.text_at("reason").value()});
    }
    return seen;
  }

  // All is well but this one.
  void expect_only_failure(const Ended& ended, const std::string& name, const std::string& reason) const {
    EXPECT_EQ(ended.exit_code, 1) << ended.log;
    bool is_there = false;
    for (const SeenCheck& check : checks_of(ended)) {
      EXPECT_EQ(check.result == "FAILED", check.name == name) << check.name << ": " << check.reason;
      if (check.name != name) continue;
      is_there = true;
      EXPECT_THAT(check.reason, HasSubstr(reason));
    }
    EXPECT_TRUE(is_there) << ended.out;
    EXPECT_THAT(ended.log, HasSubstr("FAILED: " + name));
    EXPECT_FALSE(has_left_nothing()) << "files of a failure stay";
  }

  static bool becomes(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
    return true;
  }

  std::vector<std::string> files_called(const std::string& name) const {
    std::vector<std::string> found;
    std::error_code gone;
    for (auto entry = std::filesystem::recursive_directory_iterator(path("tmp"), gone);
         !gone && entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone)) {
      if (entry->path().filename() == name) found.push_back(entry->path().string());
    }
    return found;
  }

  // Once such a file is there, with this text in it.
  bool says(const std::string& file, const std::string& text) const {
    return becomes([&] {
      for (const std::string& one : files_called(file)) {
        const auto content = read_file(one, std::size_t{1} << 24);
        if (content && content->find(text) != std::string::npos) return true;
      }
      return false;
    });
  }

  void expect_interrupted(RunningProgram& program) const {
    program.signal(SIGINT);
    const Ended ended = program.wait(seconds(30));
    EXPECT_EQ(ended.exit_code, 75) << ended.log;
    EXPECT_THAT(ended.log, HasSubstr("ended by SIGINT"));
    EXPECT_TRUE(has_left_nothing());
    EXPECT_EQ(processes_naming(path("tmp")), std::vector<pid_t>());
  }
};

TEST_F(Doctor, PassesOnTheCpu) {
  const Ended ended = run({"--device=cpu", kSteady});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  for (const char* row : {"\noperators +passed +15 operators, equal bits", "\nblock gpt fp32 +passed",
                          "\nblock gpt bf16 +passed", "\nblock bert fp32 +passed", "\nblock bert bf16 +passed",
                          "\nlink unix +passed", "\nlink tls +passed", "\nlink nccl +not checked +NCCL is for GPUs",
                          "\nreproducible +passed", "\nmemory +passed", "\nrecovery +passed +trains again after "}) {
    EXPECT_THAT(ended.out, testing::ContainsRegex(row));
  }
  EXPECT_THAT(ended.out, testing::ContainsRegex("\npassed: 11 checks on cpu in [0-9]+ s, 1 not checked\n$"));
  EXPECT_TRUE(has_left_nothing());
}

TEST_F(Doctor, PassesOnADevice) {
  const Ended ended = run({"--device=fake", kSteady, "--json"}, {"FAKE_DEVICES=2", "NCCL_DEBUG=INFO"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  for (const SeenCheck& check : checks_of(ended)) {
    EXPECT_EQ(check.result, "passed") << check.name << ": " << check.reason;
    const bool is_block = check.name.starts_with("block ");
    EXPECT_EQ(check.figure == "0 off the CPU, bits repeat, the worst of 2", is_block)
        << check.name << ": " << check.figure;
  }
  for (const char* fact : {"\"NCCL_DEBUG\": \"INFO\"", "\"libtorch\": ", "\"processor\": ", "\"verdict\": \"passed: ",
                           "2 x fake accelerator, 4.0 GiB", "\"nccl\": \"23007\"",
                           "\"etcd\": \"etcd Version: ", "\"preset\": \"", "\"compiler\": \"GNU "}) {
    EXPECT_THAT(ended.out, HasSubstr(fact));
  }
  EXPECT_TRUE(has_left_nothing());
}

TEST_F(Doctor, SaysWhyNcclIsNotChecked) {
  for (const auto& [variable, reason] :
       {std::pair<std::string, std::string>("FAKE_NCCL=0", "NCCL"), {"FAKE_DEVICES=1", "there is one"}}) {
    const Ended ended = run({"--device=fake", "--only=links", "--json"}, {variable});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
    const std::vector<SeenCheck> checks = checks_of(ended);
    const auto nccl = std::ranges::find(checks, "link nccl", &SeenCheck::name);
    ASSERT_NE(nccl, checks.end());
    EXPECT_EQ(nccl->result, "not checked");
    EXPECT_THAT(nccl->reason, HasSubstr(reason));
    const bool has_nccl = variable != "FAKE_NCCL=0";
    EXPECT_THAT(ended.out, HasSubstr(has_nccl ? "\"nccl\": \"23007\"" : "\"nccl\": \"none: this build has no NCCL"));
  }
}

TEST_F(Doctor, ComparesSpeedWithThePlanners) {
  const Ended ended = run({"--device=cpu", "--only=throughput", "--json"});
  EXPECT_THAT(ended.exit_code, testing::AnyOf(0, 1)) << ended.log;
  const auto checks = checks_of(ended);
  ASSERT_EQ(checks.size(), 2U) << ended.out;
  EXPECT_THAT(checks[1].figure, testing::ContainsRegex("tokens/s, predicted [0-9.]+ k?tokens/s")) << checks[1].reason;
  EXPECT_THAT(ended.out, HasSubstr("\"forward_ms\": "));
}

TEST_F(Doctor, SaysThatThereIsNoGpu) {
  const Ended ended = run({"--device=cuda", "--json"});
  EXPECT_EQ(ended.exit_code, 1) << ended.log;
  for (const SeenCheck& check : checks_of(ended)) {
    EXPECT_EQ(check.result, check.name == "devices" ? "FAILED" : "not checked");
    EXPECT_THAT(check.reason, HasSubstr(check.name == "devices" ? "this build has no CUDA" : "there is no device"));
  }
}

TEST_F(Doctor, ChecksTheCpuIfThereIsNoGpu) {
  const Ended ended = run({"--only=operators"});
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("no GPU was found (this build has no CUDA)"), HasSubstr("passed: 2 checks on cpu")));
}

TEST_F(Doctor, FindsAWrongOperator) {
  expect_only_failure(run({"--device=fake", "--only=operators,blocks", "--json"}, {"FAKE_WRONG_OPERATOR=gelu_"}),
                      "operators", "on fake:7 these have other bits than on the CPU: gelu_");
}

// The second of two; what it computes repeats.
TEST_F(Doctor, FindsTheOneDeviceThatComputesWrongly) {
  const Ended ended = run({"--device=fake", "--only=operators,blocks", "--json"},
                          {"FAKE_DEVICES=2", "FAKE_WRONG_OPERATOR=gelu_", "FAKE_WRONG_DEVICE=1"});
  EXPECT_EQ(ended.exit_code, 1) << ended.log;
  const auto checks = checks_of(ended);
  ASSERT_EQ(checks.size(), 6U);
  EXPECT_EQ(checks[1].reason, "on fake:1 these have other bits than on the CPU: gelu_");
  // A wrong bit of one number may be rounded away in the others.
  for (const SeenCheck& check : checks) {
    if (check.name != "block gpt fp32") continue;
    EXPECT_THAT(check.reason, HasSubstr("on fake:1 it has other bits than fake:0")) << check.name;
  }
}

TEST_F(Doctor, SaysThatADeviceCannotBeUsedAndNotThatItIsNotChecked) {
  expect_only_failure(run({"--device=fake", "--only=links", "--json"}, {"FAKE_DEVICES=3", "FAKE_LOST_DEVICE=2"}),
                      "link nccl", "fake:2: cannot use GPU 2: it has fallen off the bus");
}

TEST_F(Doctor, FindsBitsThatDiffer) {
  expect_only_failure(
      run({"--device=fake", "--only=reproducible,memory", "--json"}, {"FAKE_WRONG_OPERATOR=adamw_:" + path("wrong")}),
      "reproducible", "differ in some bit, such as");
}

TEST_F(Doctor, FindsMemoryThatNobodyPredicted) {
  expect_only_failure(run({"--device=fake", "--only=memory", "--json"}, {"FAKE_MEMORY_FACTOR=8"}), "memory",
                      "were taken on the fullest worker");
}

// Replay makes updates on the host. What is wrong once only may go with the worker that is killed.
TEST_F(Doctor, FindsAJobWhoseBitsAreNotReplayed) {
  expect_only_failure(run({"--device=fake", "--only=recovery", "--json"}, {"FAKE_WRONG_OPERATOR=adamw_"}), "recovery",
                      "BITS: ");
}

TEST_F(Doctor, FindsAJobThatDoesNotRecover) {
  RunningProgram program({"doctor", "--device=cpu", "--only=recovery", "--json"}, environment());
  ASSERT_TRUE(says("train.log", "event=worker_died"));
  for (const pid_t process : living_children(program.pid())) {
    const auto words = arguments_of(process);
    if (!words.empty() && words.front() == "train") send_signal(process, SIGKILL);
  }
  expect_only_failure(program.wait(kPatience), "recovery", "LIVE: no two new checkpoints");
}

TEST_F(Doctor, LetsTheNextWorkerGoOnWhereThereIsOneDevice) {
  const Ended ended = run({"--device=fake", "--only=recovery"}, {"FAKE_DEVICES=1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("the next worker goes on"));
}

TEST_F(Doctor, SaysWhatRecoveryLacks) {
  expect_only_failure(run({"--device=cpu", "--only=recovery", "--json"}, {"PATH=/nowhere"}), "recovery",
                      "there is no program etcd here");
}

TEST_F(Doctor, LeavesNothingBehindWhenItIsInterrupted) {
  RunningProgram early({"doctor", "--device=cpu", "--only=blocks"}, environment());
  ASSERT_TRUE(becomes([&] { return !files_called("blocks.log").empty(); }));
  expect_interrupted(early);
  RunningProgram training({"doctor", "--device=cpu", "--only=memory"}, environment());
  ASSERT_TRUE(says("train.log", "event=step"));
  expect_interrupted(training);
  RunningProgram late({"doctor", "--device=cpu", "--only=recovery"}, environment());
  ASSERT_TRUE(says("train.log", "event=generation"));
  expect_interrupted(late);
}

TEST_F(Doctor, KeepsItsFilesWhereItIsTold) {
  const Ended ended = run({"--device=cpu", "--only=operators", "--output=" + path("kept")});
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("files are in " + path("kept")));
  EXPECT_TRUE(std::filesystem::exists(path("kept/operators.log")));
  EXPECT_TRUE(has_left_nothing());
}

TEST_F(Doctor, RefusesWhatMakesNoSense) {
  for (const auto& [option, line] :
       {std::pair<std::string, std::string>("--only=blocks,engine", "the doctor checks no 'engine'"),
        {"--device=cuda:x", "is no device"},
        {"--output=" + path("."), "is not empty"}}) {
    const Ended ended = run({option});
    EXPECT_EQ(ended.exit_code, 64) << ended.log;
    EXPECT_THAT(ended.log, HasSubstr(line));
    EXPECT_EQ(ended.log.find('\n'), ended.log.size() - 1) << ended.log;
  }
  EXPECT_TRUE(has_left_nothing());
}

}  // namespace
}  // namespace everstep::launcher
