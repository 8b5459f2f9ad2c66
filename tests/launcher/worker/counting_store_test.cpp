#include "launcher/worker/counting_store.h"

#include <vector>

#include <gtest/gtest.h>

#include "elastic/brain/head_commit.h"
#include "tests/launcher/worker/scripted_store.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using elastic::Keys;

const Keys kKeys("first");
const elastic::Attempt kAttempt{{3}, 7};
const WorkerId kWorker{{1, 2}};

TEST(CountingStore, KnowsCallsByTheirKeys) {
  const auto kind = [](elastic::KvOp op) { return kind_of({{}, {std::move(op)}}, kKeys); };
  EXPECT_EQ(kind(elastic::put(kKeys.member(kWorker), "")), StoreCall::kMembership);
  EXPECT_EQ(kind(elastic::put(kKeys.prepared(kAttempt, kWorker), "")), StoreCall::kMembership);
  EXPECT_EQ(kind(elastic::get(kKeys.head())), StoreCall::kCheckpoint);
  EXPECT_EQ(kind(elastic::put(kKeys.ack(kAttempt, "name", kWorker), "")), StoreCall::kCheckpoint);
  EXPECT_EQ(kind(elastic::put(kKeys.progress(), "")), StoreCall::kProgress);
  EXPECT_EQ(kind(elastic::list(kKeys.live())), StoreCall::kList);
}

TEST(CountingStore, CountsANewGenerationAsMembershipThoughItSweepsAcknowledgementsAway) {
  const elastic::Txn open{{}, {elastic::put(kKeys.generation(), ""), elastic::remove_prefix(kKeys.acks())}};
  EXPECT_EQ(kind_of(open, kKeys), StoreCall::kMembership);
  const elastic::HeadCommit commit(kKeys, {}, {}, kKeys.acks());
  EXPECT_EQ(kind_of(commit.transaction(), kKeys), StoreCall::kCheckpoint);
}

TEST(CountingStore, PassesCallsOnAndTellsOfEach) {
  std::vector<StoreCall> calls;
  auto inner = std::make_unique<ScriptedStore>([](elastic::LeaseId lease, std::chrono::milliseconds) {
    return lease == 5 ? Result<std::chrono::seconds>(9s) : not_found("no such lease");
  });
  CountingStore store(std::move(inner), kKeys, [&](StoreCall call) { calls.push_back(call); });
  const auto left = store.renew(5, 1s);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, 9s);
  EXPECT_EQ(store.transact({{}, {elastic::list(kKeys.live())}}, 1s).error().message, "not scripted");
  EXPECT_EQ(calls, (std::vector{StoreCall::kLease, StoreCall::kList}));
}

}  // namespace
}  // namespace everstep::launcher
