#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/running_job.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/call_port.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

// All that a caller is told: one refusal, and not a byte besides.
Refusal refusal_of(const std::string& address, Wire wire, const CallerHello& hello) {
  Stranger stranger(address, wire);
  EXPECT_TRUE(stranger.is_connected());
  stranger.say(encode_hello(hello));
  const auto reply = understood(stranger.hear());
  EXPECT_TRUE(reply && reply->kind == Reply::Kind::kRefusal);
  return reply ? reply->refusal : Refusal::kTooEarly;
}

class SocketFencing : public OverEachWire {
 protected:
  static Refusal refusal_of(const std::string& address, const CallerHello& hello) {
    return trainer::refusal_of(address, GetParam(), hello);
  }
};

TEST_P(SocketFencing, CallsForAnotherLineageOrAnOlderGenerationCostARunningJobNothing) {
  RunningJob job(options_of(GetParam()));
  CallerHello other_lineage = hello_of_worker_1(5);
  other_lineage.attempt.lineage = kTestLineage + 1;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(refusal_of(job.address(), other_lineage), Refusal::kOtherRun);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(4)), Refusal::kOver);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(-1)), Refusal::kOver);
    EXPECT_EQ(refusal_of(job.address(), hello_of_worker_1(5)), Refusal::kOver) << "this try has come off already";
  }
  EXPECT_EQ(job.connector().fenced(), 30) << "another lineage is no late worker of this job";
  EXPECT_TRUE(job.finish());
}

TEST_P(SocketFencing, CallsForANewerGenerationOrAnotherTryHearNothingUntilTheyAreTurnedAway) {
  RunningJob job(options_of(GetParam()));
  Stranger newer(job.address(), GetParam());
  newer.say(encode_hello(hello_of_worker_1(6)));
  Stranger other_try(job.address(), GetParam());
  other_try.say(encode_hello(hello_of_worker_1(5, 77)));
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(newer.is_quiet());
  EXPECT_TRUE(other_try.is_quiet());
  job.connector().give_up(Generation{5}, 77);
  EXPECT_EQ(understood(other_try.hear())->refusal, Refusal::kOver);
  EXPECT_TRUE(newer.is_quiet());
  job.connector().give_up(Generation{6}, 0);
  EXPECT_EQ(understood(newer.hear())->refusal, Refusal::kOver);
  EXPECT_TRUE(job.finish());
}

TEST_P(SocketFencing, MoreParkedCallsThanThereIsRoomForTurnTheOldestAway) {
  RunningJob job(options_of(GetParam()));
  std::vector<std::unique_ptr<Stranger>> callers;
  for (int i = 0; i < 300; ++i) {
    callers.push_back(std::make_unique<Stranger>(job.address(), GetParam()));
    callers.back()->say(encode_hello(hello_of_worker_1(6 + i)));
  }
  EXPECT_EQ(understood(callers.front()->hear())->refusal, Refusal::kTooEarly);
  EXPECT_TRUE(callers.back()->is_quiet());
  EXPECT_TRUE(job.finish());
}

// A certificate alone is enough to wait, and not to push those out who have the secret as well.
TEST(SocketFencingWithCertificates, CallersWithoutTheSecretDoNotKeepAnHonestOneOfAnotherHostFromWaiting) {
  LogLines log;
  LoopbackWorkers workers(2, certificate_options(kTestSecret, log.hook()));
  ConnectOutcome early{Error{}, {}};
  std::thread eager([&] { early = workers.connectors[1]->connect(test_roster(1, workers.addresses), 2 * kSoon); });
  std::this_thread::sleep_for(300ms);  // until it waits, longer than all others
  std::vector<std::unique_ptr<Stranger>> thieves;
  for (int i = 0; i < static_cast<int>(kParkedCalls) + 20; ++i) {
    thieves.push_back(std::make_unique<Stranger>(call_from("127.0.0.9", workers.addresses[0]), workers.addresses[0],
                                                 Wire::kCertificates, "no secret"));
    thieves.back()->say(encode_hello(hello_of_worker_1(1, i + 1)));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(understood(thieves[i]->hear())->refusal, Refusal::kTooEarly);
  const auto late = workers.connectors[0]->connect(test_roster(0, workers.addresses), kSoon);
  eager.join();
  EXPECT_TRUE(late.connection) << late.connection.error();
  EXPECT_TRUE(early.connection) << early.connection.error();
}

// Whoever calls under a wrong name or number, or means somebody else, hears no proof, and blocks nobody.
TEST_P(SocketFencing, CallersThatAreNotExpectedAreRefusedBeforeAnyProof) {
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  ConnectOutcome first{Error{}, {}};
  std::thread connecting([&] { first = workers.connectors[0]->connect(test_roster(0, workers.addresses), kSoon); });
  std::vector<CallerHello> wrong(8, hello_of_worker_1());
  wrong[0].caller.id = test_worker_id(9);
  wrong[1].called.id = test_worker_id(9);
  wrong[2].called.worker = 1;
  wrong[3].caller.worker = 2;
  wrong[4].caller.worker = -1;
  wrong[5].caller = {0, test_worker_id(0)};
  wrong[6].caller.worker = std::numeric_limits<std::int32_t>::max();
  wrong[7].purpose = {Channel::kRecords};  // its lifeline has to come first
  for (const CallerHello& hello : wrong) {
    EXPECT_EQ(refusal_of(workers.addresses[0], hello), Refusal::kNotExpected);
  }
  const auto second = workers.connectors[1]->connect(test_roster(1, workers.addresses), kSoon);
  connecting.join();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
  EXPECT_TRUE(log.comes("another worker is expected"));
}

TEST_P(SocketFencing, NoiseOfAllKindsCostsARunningJobNothing) {
  LogLines log;
  RunningJob job(options_of(GetParam(), log.hook()));
  std::vector<std::unique_ptr<Stranger>> callers;
  for (int i = 0; i < 60; ++i) {
    callers.push_back(std::make_unique<Stranger>(job.address(), GetParam()));
    std::string hello = encode_hello(hello_of_worker_1(5));
    hello[static_cast<std::size_t>(i) % 8] ^= 0x55;  // the magic number
    callers.back()->say(i % 3 == 0 ? hello : i % 3 == 1 ? hello.substr(0, 20) : std::string(5000, 'x'));
    if (i % 4 == 0) callers.back()->hang_up();
  }
  for (int i = 0; i < 60; i += 3) {
    if (i % 4 == 0) continue;
    EXPECT_EQ(callers[i]->hear(), "");
  }
  EXPECT_TRUE(job.finish());
  EXPECT_TRUE(log.comes("does not speak this protocol"));
}

INSTANTIATE_TEST_SUITE_P(, SocketFencing, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
