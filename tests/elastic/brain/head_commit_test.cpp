#include "elastic/brain/head_commit.h"

#include <gtest/gtest.h>

#include "elastic/sim/kv_model.h"

namespace everstep::elastic::test {
namespace {

using State = HeadCommit::State;

class Commit : public testing::Test {
 protected:
  Commit() {
    store.apply({{}, {put(keys.generation(), "g"), put(keys.leader(), "l")}}).value();
    expected.generation = expected.leader = store.revision();
  }

  HeadRecord head(std::int64_t sequence) const { return {sequence, {1}, {sequence * 8}, std::string(64, 'b'), ""}; }
  std::string stored() { return store.apply({{}, {get(keys.head())}})->reads[0][0].value; }

  Keys keys{"job"};
  KvModel store;
  HeadCommit::Expected expected;
};

TEST_F(Commit, MovesHeadAndKeepsALog) {
  HeadCommit commit(keys, expected, head(1));
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kCommitted);
  EXPECT_EQ(stored(), to_text(head(1)));
}

TEST_F(Commit, ThatWasExecutedWithoutAReplyIsFoundOutBySendingItAgain) {
  HeadCommit commit(keys, expected, head(1));
  store.apply(commit.transaction()).value();
  EXPECT_EQ(commit.on_reply(Error{ErrorCode::kDeadlineExceeded, "slow", {}}), State::kSending);
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kCommitted);
}

TEST_F(Commit, ThatWasExecutedIsFoundOutEvenAfterAnotherFollowed) {
  HeadCommit first(keys, expected, head(1));
  store.apply(first.transaction()).value();
  expected.head = store.revision();
  HeadCommit second(keys, expected, head(2));
  EXPECT_EQ(second.on_reply(store.apply(second.transaction())), State::kCommitted);
  EXPECT_EQ(first.on_reply(store.apply(first.transaction())), State::kCommitted);
  EXPECT_EQ(stored(), to_text(head(2)));
}

TEST_F(Commit, OfAnOlderGenerationIsRefused) {
  HeadCommit commit(keys, expected, head(1));
  store.apply({{}, {put(keys.generation(), "next")}}).value();
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kRefused);
}

// Found by the simulator: a committer that had read a stale HEAD took itself for overtaken and never saved again.
TEST_F(Commit, OnAnotherHeadIsOutdatedWhileItsGenerationAndLeaderLast) {
  HeadCommit commit(keys, expected, head(1));
  store.apply({{}, {put(keys.head(), "other")}}).value();
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kOutdated);
}

TEST_F(Commit, OfALeaderThatWasReplacedIsRefused) {
  HeadCommit commit(keys, expected, head(1));
  store.apply({{}, {remove(keys.leader()), put(keys.head(), "other")}}).value();
  store.apply({{}, {put(keys.leader(), "another")}}).value();
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kRefused);
}

// What is refused is the second try: the first may have been executed all the same.
TEST_F(Commit, StaysUnknownWhenItIsRefusedAfterATryThatNobodyAnswered) {
  for (const ErrorCode refusal : {ErrorCode::kInvalidArgument, ErrorCode::kDataLoss}) {
    HeadCommit commit(keys, expected, head(1));
    EXPECT_EQ(commit.on_reply(Error{ErrorCode::kDeadlineExceeded, "slow", {}}), State::kSending);
    EXPECT_EQ(commit.on_reply(Error{refusal, "no", {}}), State::kUnknown);
  }
}

TEST_F(Commit, IsRefusedWhenNoTryCanHaveBeenExecuted) {
  HeadCommit commit(keys, expected, head(1));
  EXPECT_EQ(commit.on_reply(Error{ErrorCode::kUnavailable, "away", {}}), State::kSending);
  EXPECT_EQ(commit.on_reply(Error{ErrorCode::kInvalidArgument, "no", {}}), State::kRefused);
}

// Somebody who may write to the store hides what became of it.
TEST_F(Commit, IsFoundOutByHeadWhenTheLogIsGoneAndUnknownWhenBothAreForged) {
  HeadCommit commit(keys, expected, head(1));
  store.apply(commit.transaction()).value();
  store.apply({{}, {remove(keys.past_head(1))}}).value();
  (void)commit.on_reply(Error{ErrorCode::kDeadlineExceeded, "slow", {}});
  HeadCommit other = commit;
  EXPECT_EQ(commit.on_reply(store.apply(commit.transaction())), State::kCommitted);
  TxnReply forged = store.apply(other.transaction()).value();
  forged.forged = {{keys.head(), "", 1, 2, 0}};
  forged.reads.at(1).clear();
  EXPECT_EQ(other.on_reply(forged), State::kUnknown);
}

TEST_F(Commit, TakesTheAcknowledgementsAway) {
  const std::string acks = keys.acks({{1}, 7}, "p8");
  store.apply({{}, {put(acks + "a", "1"), put(keys.acks({{1}, 7}, "p16") + "a", "1")}}).value();
  HeadCommit commit(keys, expected, head(1), acks);
  commit.on_reply(store.apply(commit.transaction()));
  EXPECT_EQ(store.apply({{}, {list(keys.acks())}})->reads[0].size(), 1U);
}

}  // namespace
}  // namespace everstep::elastic::test
