#include <atomic>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "tests/trainer/ucx/loopback_workers.h"
#include "tests/trainer/ucx/stranger.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFrame = 100'000;

FrameHeader header(std::int64_t window) {
  FrameHeader header;
  header.window = window;
  header.length = kFrame;
  return header;
}

// Two workers of generation 5 that send frames to each other all the time.
class RunningJob {
 public:
  explicit RunningJob(const UcxOptions& options = {}) : workers_(2, options), connections_(workers_.connect(5)) {
    training_ = std::thread([this] { train(); });
  }
  ~RunningJob() {
    stopping_ = true;
    if (training_.joinable()) training_.join();
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  UcxListener& listener() { return *workers_.listeners[0]; }
  const std::string& address() const { return workers_.addresses[0]; }

  // What the job has to say about its last frames: they came, after everything that was done to it.
  Status finish() {
    const std::int64_t before = delivered_;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (delivered_ < before + 3 && !failed_ && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
    stopping_ = true;
    training_.join();
    EXPECT_GE(delivered_, before + 3);
    for (const UcxConnection& connection : connections_) EVERSTEP_TRY(connection.transport->status());
    return {};
  }

 private:
  void train() {
    while (!stopping_ && !failed_) {
      for (const int from : {0, 1}) {
        Transport& receiver = *connections_[1 - from].transport;
        const Buffer into = allocate_zeroed(kFrame);
        const ReceiveId receive = receiver.post_receive(from, Channel::kTensors, header(delivered_), into);
        connections_[from].transport->send(1 - from, Channel::kTensors, header(delivered_), allocate_zeroed(kFrame));
        failed_ = failed_ || !receiver.wait(receive, 10s) || !connections_[from].transport->flush(10s);
      }
      ++delivered_;
    }
  }

  LoopbackWorkers workers_;
  std::vector<UcxConnection> connections_;
  std::atomic<std::int64_t> delivered_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::thread training_;
};

// All that a stranger is told: one refusal, and not a byte besides.
Refusal refusal_of(const std::string& address, const CallerHello& hello) {
  const FileDescriptor socket = call(address);
  say(socket, encode_hello(hello));
  const auto reply = understood(hear(socket));
  EXPECT_TRUE(reply && reply->kind == Reply::Kind::kRefusal);
  return reply ? reply->refusal : Refusal::kTooEarly;
}

TEST(UcxFencing, CallsForAnotherLineageOrAnOlderGenerationCostARunningJobNothing) {
  RunningJob job;
  CallerHello other_lineage = hello_of_worker_1(5);
  other_lineage.attempt.lineage = kTestLineage + 1;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(refusal_of(job.address(), other_lineage), Refusal::kOtherRun);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(4)), Refusal::kOver);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(-1)), Refusal::kOver);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(5)), Refusal::kOver) << "this try has come off already";
  }
  EXPECT_EQ(job.listener().fenced(), 60) << "another lineage is no late worker of this job";
  EXPECT_TRUE(job.finish());
}

TEST(UcxFencing, CallsForANewerGenerationOrAnotherTryHearNothingUntilTheyAreTurnedAway) {
  RunningJob job;
  const FileDescriptor newer = call(job.address());
  say(newer, encode_hello(hello_of_worker_1(6)));
  const FileDescriptor other_try = call(job.address());
  say(other_try, encode_hello(hello_of_worker_1(5, 77)));
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(is_quiet(newer));
  EXPECT_TRUE(is_quiet(other_try));
  job.listener().give_up(Generation{5}, 77);
  EXPECT_EQ(understood(hear(other_try))->refusal, Refusal::kOver);
  EXPECT_TRUE(is_quiet(newer));
  job.listener().give_up(Generation{6}, 0);
  EXPECT_EQ(understood(hear(newer))->refusal, Refusal::kOver);
  EXPECT_TRUE(job.finish());
}

TEST(UcxFencing, MoreParkedCallsThanThereIsRoomForTurnTheOldestAway) {
  RunningJob job;
  std::vector<FileDescriptor> callers;
  for (int i = 0; i < 300; ++i) {
    callers.push_back(call(job.address()));
    say(callers.back(), encode_hello(hello_of_worker_1(6 + i)));
  }
  EXPECT_EQ(understood(hear(callers.front()))->refusal, Refusal::kTooEarly);
  EXPECT_TRUE(is_quiet(callers.back()));
  EXPECT_TRUE(job.finish());
}

// A whole connection as somebody on the network saw it, sent again to a job that has gone on.
TEST(UcxFencing, ARecordedConnectionOfAnOldGenerationIsRefused) {
  const HandshakeSeal seal = seal_with("one");
  const auto listener = UcxListener::listen({.seal = seal}).value();
  const UcxGroup group = test_group(0, {listener->address(), "127.0.0.1:1"});
  UcxOutcome old{Error{}, {}};
  std::thread connecting([&] { old = listener->connect(group, 10s); });
  const CallerHello hello = hello_of_worker_1(1);
  std::string recorded = encode_hello(hello);
  const FileDescriptor genuine = call(listener->address());
  say(genuine, recorded);
  const Proof theirs = understood(hear_reply(genuine))->proof;
  const std::string proof = proof_text(make_proof(seal, hello, Side::kCaller, theirs.fresh, {}, theirs.ucx_address));
  recorded += proof;
  say(genuine, proof);
  connecting.join();
  ASSERT_TRUE(old.connection) << old.connection.error();

  const auto alone = listener->connect({kTestLineage, Generation{2}, 0, 0, {group.members[0]}}, 1s);
  ASSERT_TRUE(alone.connection);
  const FileDescriptor replay = call(listener->address());
  say(replay, recorded);
  const auto verdict = understood(hear(replay, kReplyHeadBytes + 1));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->refusal, Refusal::kOver);
  EXPECT_EQ(listener->fenced(), 1);
  EXPECT_TRUE(alone.connection->transport->status());
}

// Whoever calls under a wrong name or number, or means somebody else, hears no proof, and blocks nobody.
TEST(UcxFencing, CallersThatAreNotExpectedAreRefusedBeforeAnyProof) {
  LogLines log;
  LoopbackWorkers workers(2, {.seal = seal_with("one"), .log = log.hook()});
  UcxOutcome first{Error{}, {}};
  std::thread connecting([&] { first = workers.listeners[0]->connect(test_group(0, workers.addresses), 10s); });
  std::vector<CallerHello> wrong(7, hello_of_worker_1());
  wrong[0].caller.id = test_worker_id(9);
  wrong[1].called.id = test_worker_id(9);
  wrong[2].called.worker = 1;
  wrong[3].caller.worker = 2;
  wrong[4].caller.worker = -1;
  wrong[5].caller = {0, test_worker_id(0)};
  wrong[6].caller.worker = std::numeric_limits<std::int32_t>::max();
  for (const CallerHello& hello : wrong) {
    EXPECT_EQ(refusal_of(workers.addresses[0], hello), Refusal::kNotExpected);
  }
  const auto second = workers.listeners[1]->connect(test_group(1, workers.addresses), 10s);
  connecting.join();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
  EXPECT_TRUE(log.comes("another worker is expected"));
}

TEST(UcxFencing, NoiseOfAllKindsCostsARunningJobNothing) {
  LogLines log;
  RunningJob job({.seal = seal_with("one"), .log = log.hook()});
  std::vector<FileDescriptor> callers;
  for (int i = 0; i < 60; ++i) {
    callers.push_back(call(job.address()));
    std::string hello = encode_hello(hello_of_worker_1(5));
    hello[static_cast<std::size_t>(i) % 8] ^= 0x55;  // the magic number
    say(callers.back(), i % 3 == 0 ? hello : i % 3 == 1 ? hello.substr(0, 20) : std::string(5000, 'x'));
    if (i % 4 == 0) callers.back().reset();
  }
  for (int i = 0; i < 60; i += 3) {
    if (!callers[i].is_open()) continue;
    EXPECT_EQ(hear(callers[i]), "");
  }
  EXPECT_TRUE(job.finish());
  EXPECT_TRUE(log.comes("does not speak this protocol"));
}

}  // namespace
}  // namespace everstep::trainer
