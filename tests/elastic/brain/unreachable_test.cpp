// Workers that are there, but that others cannot connect to: they stand by, longer each time, and people are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const Error kRefused{ErrorCode::kUnavailable, "worker-2 cannot be reached at address-2: Connection refused",
                     "can this host reach that address?"};

Attempt attempt_of(const SmallCluster& cluster) { return cluster.generation()->roster.attempt; }

// Two that cannot do without each other: a network device without carrier, or an address that only one host knows.
class Unreachable : public testing::Test {
 protected:
  Unreachable() {
    for (const int number : {1, 2}) add(number);
    cluster.run_until_quiet(3000);
    cluster.run_until_quiet();
  }

  void add(std::uint64_t number) {
    cluster.add(number);
    cluster.at(number).connects = false;
  }

  // The first worker cannot connect to the other, which is evicted and comes back at once.
  void fail_to_connect() {
    cluster.tell(1, ConnectFailed{attempt_of(cluster), worker(other), kRefused, true});
    cluster.run_until_quiet(1);
    ASSERT_FALSE(cluster.has(cluster.keys().member(worker(other))));
    cluster.kill(other);
    other += 100;
    add(other);
    cluster.run_until_quiet(100);
  }

  SmallCluster cluster{2};
  std::uint64_t other = 2;
};

TEST_F(Unreachable, WaitsLongerEachTimeInsteadOfOpeningAGenerationAfterTheOther) {
  for (const std::int64_t seconds : {5, 10, 20, 40}) {
    const Attempt failed = attempt_of(cluster);
    fail_to_connect();
    const KeyValue* record = cluster.view().find(cluster.keys().quarantine("address-2"));
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(parse_quarantine(record->value)->seconds, seconds);
    cluster.run_until_quiet((seconds - 1) * 1000);
    EXPECT_EQ(attempt_of(cluster), failed) << "it stands by";
    cluster.run_until_quiet(8000);
    EXPECT_EQ(attempt_of(cluster).generation, failed.generation.next()) << "it is tried again";
  }
}

TEST_F(Unreachable, IsToldOfWithAReasonAndAHint) {
  fail_to_connect();
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=connect_failed generation=1"),
                                            HasSubstr("cannot be reached at address-2"), HasSubstr("hint"))));
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=evicted worker=worker-2 host=host address=address-2"),
                                            HasSubstr("Connection refused"), HasSubstr("hint="))));
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=worker_set_back address=address-2 seconds=5 times=1"),
                                            HasSubstr("hint="))));
}

TEST_F(Unreachable, IsNoWorkerThatDiedAndWasStartedAgainElsewhere) {
  cluster.tell(1, ConnectFailed{attempt_of(cluster), worker(2), kRefused, true});
  cluster.kill(2);
  add(3);
  cluster.run_until_quiet(1000);
  EXPECT_EQ(attempt_of(cluster).generation, Generation{2}) << "a new address: nothing is held against it";
}

// Three train, and a fourth one wants to join.
class Joining : public testing::Test {
 protected:
  Joining() {
    for (const int number : {1, 2, 3}) cluster.add(number);
    cluster.run_until_quiet(3000);
    cluster.run_until_quiet();
    cluster.add(4);
    cluster.at(4).connects = false;
    cluster.run_until_quiet(30'000);
  }

  bool is_proposed() const { return cluster.has(cluster.keys().proposal()); }

  void fail_to_connect() {
    const Attempt attempt = parse_roster(cluster.view().find(cluster.keys().proposal())->value)->attempt;
    cluster.tell(4, ConnectFailed{attempt, worker(2), kRefused, true});
    cluster.run_until_quiet();
  }

  SmallCluster cluster;
};

TEST_F(Joining, IsTriedLessAndLessOftenWhileItCannotConnect) {
  for (const Tick seconds : {30, 60, 120}) {
    ASSERT_TRUE(is_proposed());
    fail_to_connect();
    EXPECT_FALSE(is_proposed());
    cluster.run_until_quiet(seconds * 1000 - 1);
    EXPECT_FALSE(is_proposed()) << seconds;
    cluster.run_until_quiet(1);
  }
  EXPECT_EQ(attempt_of(cluster).generation, Generation{1}) << "the others train on";
}

TEST_F(Joining, ThatFailsIsToldOfByBothSides) {
  ASSERT_TRUE(is_proposed());
  fail_to_connect();
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("event=connect_failed generation=2")));
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=proposal_withdrawn generation=2"),
                                            HasSubstr("worker-4 cannot connect: worker-2 cannot be reached"),
                                            HasSubstr("set_back=worker-4"), HasSubstr("hint="))));
}

// Whom the leader gives up because others say that it is silent.
TEST_F(Joining, IsNotTheOnlyTimeThatAnEvictionIsToldOf) {
  const Attempt attempt = attempt_of(cluster);
  cluster.drains = false;
  cluster.tell(2, TrainingEnded{attempt,
                                TrainingEnded::How::kBroken,
                                {},
                                worker(3),
                                false,
                                Error{ErrorCode::kDeadlineExceeded, "worker-3 is silent", {}}});
  cluster.run_until_quiet(60);
  cluster.run_until_quiet(3000);
  cluster.run_until_quiet(3000);
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=suspected worker=worker-3"), HasSubstr("is silent"))));
  EXPECT_THAT(cluster.notes, Contains(AllOf(HasSubstr("event=evicted worker=worker-3"),
                                            HasSubstr("it does not answer worker-2"), HasSubstr("hint="))));
}

}  // namespace
}  // namespace everstep::elastic::test
