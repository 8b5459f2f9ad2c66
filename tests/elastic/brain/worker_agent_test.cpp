#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Tick kTtl = 9 * kTicksPerSecond;
constexpr Tick kGroupLimit = kTicksPerSecond;

// Asked directly, with a view that the test makes.
class Agent : public testing::Test {
 protected:
  Decision step(const AgentEvent& event, Tick now = 0) { return agent.step(event, view, now); }

  template <typename E>
  static std::vector<E> all(const Decision& decision) {
    std::vector<E> found;
    for (const Effect& effect : decision.effects) {
      if (const E* one = std::get_if<E>(&effect)) found.push_back(*one);
    }
    return found;
  }

  void register_it() {
    const Send send = all<Send>(step(Looked{})).at(0);
    step(Replied{send.request, TxnReply{true, 2, {{}}}});
  }

  Keys keys{"job"};
  View view;
  WorkerAgent agent{AgentOptions{keys, MemberRecord{worker(1), "w", "h", "a", MemberState::kWarming, "", 0}, "spec", 5,
                                 kTtl, 60 * kTicksPerSecond, [] { return kGroupLimit; }, false}};
};

TEST_F(Agent, SendsTheSameAgainWhenNobodyKnowsWhatBecameOfARegistration) {
  const Send first = all<Send>(step(Looked{})).at(0);
  const Decision waits = step(Replied{first.request, Error{ErrorCode::kDeadlineExceeded, "slow", {}}});
  EXPECT_THAT(all<Send>(waits), IsEmpty());
  ASSERT_TRUE(waits.wake_at);
  const Send second = all<Send>(step(Looked{}, *waits.wake_at)).at(0);
  EXPECT_EQ(second.txn, first.txn);
  const std::string value = first.txn.then.front().value;
  const KeyValue spec{keys.spec(), "spec", 1, 1, 0};
  const KeyValue member{keys.member(worker(1)), value, 7, 7, 5};
  step(Replied{second.request, TxnReply{false, 9, {{spec}, {member}}}});
  EXPECT_TRUE(agent.is_registered()) << "the first try had done it";
}

TEST_F(Agent, RefusesAJobWithAnotherSpec) {
  const Send send = all<Send>(step(Looked{})).at(0);
  const KeyValue spec{keys.spec(), "other", 1, 1, 0};
  const auto exits = all<Exit>(step(Replied{send.request, TxnReply{false, 9, {{spec}, {}}}}));
  ASSERT_THAT(exits, SizeIs(1));
  EXPECT_EQ(exits.front().error->code, ErrorCode::kInvalidArgument);
}

TEST_F(Agent, RejoinsWhenItsLeaseIsGone) {
  register_it();
  EXPECT_THAT(all<Rejoin>(step(LeaseLost{})), SizeIs(1));
}

TEST_F(Agent, FencesItselfWhileItsPeersCanRenew) {
  register_it();
  const Tick heard = kTtl * 3 / 4;
  EXPECT_THAT(all<Rejoin>(step(RenewalNews{0, kTtl * 2 / 3}, heard)), IsEmpty());
  EXPECT_THAT(all<Rejoin>(step(RenewalNews{0, heard}, heard + kTtl / 6)), SizeIs(1));
}

TEST_F(Agent, NeedNotBeTheFirstToReachAStoreThatIsBack) {
  register_it();
  const Tick heard = 2 * kTtl;
  EXPECT_THAT(all<Rejoin>(step(RenewalNews{0, heard}, heard)), IsEmpty());
  EXPECT_THAT(all<Rejoin>(step(RenewalNews{heard + kTtl / 12, heard}, heard + kTtl / 6)), IsEmpty());
}

TEST_F(Agent, GoesOnWithoutTheStoreAsLongAsNobodyCanRenew) {
  register_it();
  EXPECT_THAT(all<Rejoin>(step(RenewalNews{0, kTtl / 4}, 3 * kTtl)), IsEmpty());
  EXPECT_THAT(all<Rejoin>(step(Looked{}, 60 * kTicksPerSecond)), SizeIs(1));
}

TEST_F(Agent, LeavesAtOnceWhenNothingNeedsIt) {
  register_it();
  const auto exits = all<Exit>(step(LeaveAsked{"SIGTERM", 0}));
  ASSERT_THAT(exits, SizeIs(1));
  EXPECT_EQ(exits.front().error->code, ErrorCode::kCancelled);
}

RosterRecord roster_of(std::int64_t generation, std::uint32_t nonce) {
  RosterRecord roster;
  roster.attempt = {{generation}, nonce};
  roster.plan = *wide_plan({{worker(1), "h"}, {worker(2), "h"}}, nullptr);
  return roster;
}

// Trains in generation 1 under attempt 5.
class TrainingAgent : public Agent {
 protected:
  void SetUp() override {
    register_it();
    for (const std::uint64_t number : {1, 2}) view.apply({{false, {keys.member(worker(number)), "somebody", 2, 2, 0}}});
    open(1, 5, std::nullopt);
  }

  void open(std::int64_t generation, std::uint32_t nonce, std::optional<RosterRecord> from) {
    GenerationRecord record{roster_of(generation, nonce), worker(2), {}, std::move(from), ""};
    if (record.from) record.origin = {Origin::Kind::kCopies, {16}, {}};
    if (record.from) record.holders = {{worker(1), true, true}};
    const Revision revision = 10 * generation;
    view.apply({{false, {keys.generation(), to_text(record), revision, revision, 0}}});
    step(Looked{});
    ASSERT_THAT(all<Begin>(step(Connected{record.roster.attempt})), SizeIs(1));
  }

  // What it writes about what it holds because of that; the store takes all that it is sent.
  std::optional<HeldRecord> told_after(const AgentEvent& event) {
    std::optional<HeldRecord> held;
    std::vector<Send> sends = all<Send>(step(event));
    for (Revision revision = 100; !sends.empty(); ++revision) {
      for (const KvOp& op : sends.front().txn.then) {
        if (op.key.starts_with(keys.all_held())) held = *parse_held(op.value);
      }
      sends = all<Send>(step(Replied{sends.front().request, TxnReply{true, revision, {{}}}}));
    }
    return held;
  }

  static TrainingEnded broken(const Attempt& attempt, std::vector<HeldCopy> copies) {
    TrainingEnded ended;
    ended.attempt = attempt;
    ended.held.copies = std::move(copies);
    ended.error = Error{ErrorCode::kUnavailable, "a peer died", ""};
    return ended;
  }
};

TEST_F(TrainingAgent, LeavesWhenItIsFoundToBeFaulty) {
  TrainingEnded ended = broken({{1}, 5}, {});
  ended.is_faulty = true;
  EXPECT_THAT(all<Exit>(step(ended)), SizeIs(1));
}

TEST_F(TrainingAgent, TellsWhichCopiesItHas) {
  const HeldCopy copy{{1}, {16}, true, true};
  const auto held = told_after(broken({{1}, 5}, {copy}));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->copies, std::vector{copy});
}

// Peers that made the first update have forgotten the old ones; peers that did not may lack the new ones.
TEST_F(TrainingAgent, TellsOldAndNewCopiesUntilTheFirstUpdate) {
  const HeldCopy old{{1}, {16}, true, true};
  const HeldCopy next{{2}, {16}, true, false};
  told_after(broken({{1}, 5}, {old}));
  open(2, 6, roster_of(1, 5));
  const auto held = told_after(broken({{2}, 6}, {next}));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->copies, (std::vector{next, old}));
}

TEST_F(TrainingAgent, ForgetsOldCopiesWithTheFirstUpdate) {
  const HeldCopy next{{2}, {16}, true, true};
  told_after(broken({{1}, 5}, {{{1}, {16}, true, true}}));
  open(2, 6, roster_of(1, 5));
  told_after(FirstUpdate{{{2}, 6}});
  const auto held = told_after(broken({{2}, 6}, {next}));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->copies, std::vector{next});
}

// Its own group, which is this worker alone, may stop by itself and keep its sums.
TEST_F(TrainingAgent, GivesItsGroupTimeAfterALossInAnotherOne) {
  view.apply({{true, {keys.member(worker(2)), "", 2, 20, 0}}});
  const Decision waits = step(Looked{}, 7);
  EXPECT_THAT(all<Abort>(waits), IsEmpty());
  EXPECT_EQ(waits.wake_at, 7 + kGroupLimit);
  EXPECT_THAT(all<Abort>(step(Looked{}, 6 + kGroupLimit)), IsEmpty());
  EXPECT_THAT(all<Abort>(step(Looked{}, 7 + kGroupLimit)), SizeIs(1));
}

TEST_F(TrainingAgent, BreaksOffAtOnceWhenItsOwnGroupLostAWorker) {
  GenerationRecord record{roster_of(2, 6), worker(2), {}, std::nullopt, ""};
  record.roster.plan.depth = 2;
  record.roster.plan.width = 1;
  record.roster.plan.cuts = {0, 2, 4};
  record.roster.plan.guards.clear();
  told_after(broken({{1}, 5}, {}));
  view.apply({{false, {keys.generation(), to_text(record), 20, 20, 0}}});
  step(Looked{});
  ASSERT_THAT(all<Begin>(step(Connected{record.roster.attempt})), SizeIs(1));
  view.apply({{true, {keys.member(worker(2)), "", 2, 30, 0}}});
  EXPECT_THAT(all<Abort>(step(Looked{}, 7)), SizeIs(1));
}

TEST_F(TrainingAgent, TellsWhatItsGroupKeptUntilTheFirstUpdate) {
  TrainingEnded ended = broken({{1}, 5}, {});
  ended.held.sums = {{1}, {16}, 0, 3};
  EXPECT_EQ(told_after(ended)->sums, ended.held.sums);
  open(2, 6, roster_of(1, 5));
  EXPECT_EQ(told_after(broken({{2}, 6}, {}))->sums, ended.held.sums);
  open(3, 7, roster_of(1, 5));
  told_after(FirstUpdate{{{3}, 7}});
  EXPECT_EQ(told_after(broken({{3}, 7}, {}))->sums, std::nullopt);
}

// The first death ended the transport; of the second nobody else would tell.
TEST_F(TrainingAgent, EvictsWhoeverDiesAfterItBrokeOff) {
  told_after(broken({{1}, 5}, {}));
  const std::vector<Send> sends = all<Send>(step(PeerDied{{{1}, 5}, worker(2)}));
  ASSERT_THAT(sends, SizeIs(1));
  EXPECT_EQ(sends.front().txn.then.front().key, keys.member(worker(2)));
  EXPECT_EQ(sends.front().txn.then.front().kind, KvOp::Kind::kDelete);
}

// Found by the simulator: it connected a second time for the same attempt, while peers had the first connection.
TEST_F(Agent, KeepsWhatItConnectsForAProposalWhenItObeysTheGenerationBefore) {
  register_it();
  view.apply({{false, {keys.proposal(), to_text(roster_of(2, 7)), 3, 3, 0}}});
  EXPECT_THAT(all<Connect>(step(Looked{})), SizeIs(1));
  view.apply(
      {{false, {keys.generation(), to_text(GenerationRecord{roster_of(1, 5), worker(2), {}, {}, ""}), 4, 4, 0}}});
  const Decision obeys = step(Looked{});
  EXPECT_THAT(all<Disconnect>(obeys), IsEmpty());
  ASSERT_THAT(all<Connect>(obeys), SizeIs(1));
  EXPECT_EQ(all<Connect>(obeys).front().roster.attempt, (Attempt{{1}, 5}));
}

// Found by the simulator: the view of a newcomer showed the stop, but not yet the newcomer itself.
TEST_F(Agent, StaysWhenItCameAfterTheStop) {
  RosterRecord roster = roster_of(1, 5);
  roster.plan.workers = {worker(3), worker(2)};
  const DrainRecord stop{roster.attempt, false, {}, false, true, false, "everybody leaves"};
  view.apply({{false, {keys.generation(), to_text(GenerationRecord{roster, worker(2), {}, {}, ""}), 1, 1, 0}},
              {false, {keys.drain(), to_text(stop), 1, 1, 0}}});
  register_it();
  EXPECT_THAT(all<Exit>(step(Looked{})), IsEmpty());
  EXPECT_EQ(agent.state(), "standing by");
}

TEST_F(Agent, TriesNothingAgainThatItGaveUp) {
  register_it();
  const std::string proposal = to_text(roster_of(2, 7));
  view.apply({{false, {keys.proposal(), proposal, 3, 3, 0}}});
  EXPECT_THAT(all<Connect>(step(Looked{})), SizeIs(1));
  view.apply({{true, {keys.proposal(), {}, 0, 4, 0}}});
  EXPECT_THAT(all<Disconnect>(step(Looked{})), SizeIs(1));
  view.apply(
      {{false, {keys.generation(), to_text(GenerationRecord{roster_of(2, 7), worker(2), {}, {}, ""}), 5, 5, 0}}});
  const Decision obeys = step(Looked{});
  EXPECT_THAT(all<Connect>(obeys), IsEmpty());
  const auto sends = all<Send>(obeys);
  ASSERT_THAT(sends, SizeIs(1));
  EXPECT_EQ(sends.front().txn.then.front().key, keys.held({{2}, 7}, worker(1))) << "it cannot take part";
}

}  // namespace
}  // namespace everstep::elastic::test
