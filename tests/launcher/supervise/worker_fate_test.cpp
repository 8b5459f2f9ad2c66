#include "launcher/supervise/worker_fate.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

constexpr int kExitedWith69 = 69 << 8;  // as waitpid tells it

WorkerFate failed(ErrorCode code, std::string message, int wait_status = kExitedWith69) {
  WorkerFate fate;
  fate.error = Error{code, std::move(message), ""};
  fate.wait_status = wait_status;
  return fate;
}

WorkerFate ended(int wait_status) {
  WorkerFate fate;
  fate.wait_status = wait_status;
  fate.log_path = "run/worker.log";
  return fate;
}

WorkerFate silent() {
  WorkerFate fate;
  fate.is_silent = true;
  return fate;
}

WorkerFate done() {
  WorkerFate fate;
  fate.finished = Finished{};
  fate.wait_status = 0;
  return fate;
}

const WorkerFate kLostAPeer = failed(ErrorCode::kUnavailable, "worker 2 died");
const WorkerFate kWaitedTooLong = failed(ErrorCode::kDeadlineExceeded, "nothing came from worker 2");

TEST(WorkerFate, KnowsWhoFailed) {
  EXPECT_TRUE(done().is_done());
  EXPECT_FALSE(done().has_failed());
  EXPECT_FALSE(WorkerFate{}.has_failed());
  EXPECT_TRUE(kLostAPeer.has_failed());
  EXPECT_TRUE(ended(0).has_failed());
}

TEST(WorkerFate, BlamesASignalBeforeThoseWhoNoticed) {
  const Error error = explain_failure({kLostAPeer, kLostAPeer, ended(SIGKILL), kLostAPeer});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.line(), "worker 2 was ended by SIGKILL (hint: its last words are in run/worker.log)");
}

TEST(WorkerFate, TellsWhereACrashWas) {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("log")) << "t=1.000 event=started\n"
                                       << "t=2.000 event=crashed signal=SIGBUS worker=w2 pid=7 generation=3 step=120 "
                                          "op=F119.0.3@2 op_is=running\nabort\n";
  WorkerFate fate;
  fate.log_path = directory.file("log");
  fate.end(SIGBUS);
  EXPECT_EQ(explain_failure({kLostAPeer, fate}).message,
            "worker 1 was ended by SIGBUS in generation 3 at step 120 (F119.0.3@2 running)");
  fate = {};
  fate.log_path = directory.file("log");
  fate.end(SIGKILL);
  EXPECT_EQ(fate.crash, "") << "of another life that had the same log";
}

TEST(WorkerFate, BlamesAnErrorOfItsOwnBeforeThoseAboutPeers) {
  const Error error = explain_failure({kLostAPeer, failed(ErrorCode::kInvalidArgument, "token 300 at byte 12")});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "worker 1: token 300 at byte 12");
}

TEST(WorkerFate, TellsWhatAFailedCheckSaidAndNotItsSignal) {
  const Error error = explain_failure({kLostAPeer, failed(ErrorCode::kInternal, "check failed: x", SIGABRT)});
  EXPECT_EQ(error.message, "worker 1: check failed: x");
  EXPECT_EQ(error.code, ErrorCode::kInternal);
}

TEST(WorkerFate, BlamesTheSilentOneBeforeThoseWhoWaited) {
  const Error error = explain_failure({kWaitedTooLong, kLostAPeer, silent()});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "worker 2 gives no sign of life");
}

TEST(WorkerFate, BlamesOneThatLeftWithoutAWord) {
  EXPECT_EQ(explain_failure({done(), ended(1 << 8)}).message, "worker 1 left without a word, exit code 1");
}

TEST(WorkerFate, ElseRepeatsWhatAWorkerSays) {
  EXPECT_EQ(explain_failure({done(), kWaitedTooLong}).message, "worker 1: nothing came from worker 2");
}

}  // namespace
}  // namespace everstep::launcher
