#include "elastic/brain/coordinator.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

CoordinatorOptions options_of(const Keys& keys) {
  CoordinatorOptions options{
      .keys = keys, .self = worker(1), .first_generation = {7}, .plan = wide_plan, .nonce = [] { return 1U; }};
  return options;
}

// One worker, which is ready and leads, and a coordinator that wants to open the job's first generation.
class Leading : public testing::Test {
 protected:
  Leading() {
    const MemberRecord self{worker(1), "worker-1", "host", "address", MemberState::kReady, "", 0};
    view.replace({{keys.leader(), to_text(LeaderRecord{worker(1), 2}), 2, 2, 0},
                  {keys.member(worker(1)), to_text(self), 2, 2, 0}},
                 2);
  }

  Decision look(Tick now) { return coordinator.step(Looked{}, view, now, 0); }
  static const Send* sent(const Decision& decision) {
    return decision.effects.empty() ? nullptr : std::get_if<Send>(&decision.effects.front());
  }

  Keys keys{"job"};
  View view;
  Coordinator coordinator{options_of(keys)};
};

TEST_F(Leading, CountsFromTheJobsFirstGeneration) {
  const Decision decision = look(0);
  ASSERT_NE(sent(decision), nullptr);
  const auto opened = parse_generation(sent(decision)->txn.then.front().value);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->roster.attempt.generation, Generation{7});
}

// Found by the simulator: with a view that had lost an event it sent the same again as fast as the store refused it,
// and the loop around it never came to read the view again.
TEST_F(Leading, LooksAgainBeforeItRepeatsWhatWasRefused) {
  const Decision first = look(0);
  ASSERT_NE(sent(first), nullptr);
  const Decision refused = coordinator.step(Replied{sent(first)->request, TxnReply{false, 2, {}}}, view, 5, 0);
  EXPECT_TRUE(refused.effects.empty());
  EXPECT_EQ(refused.wake_at, 5);
  EXPECT_NE(sent(look(5)), nullptr);
}

// Put back by somebody after worker 9 had gone; nobody would lead for ever.
TEST_F(Leading, IsTakenOverFromALeaderThatIsNoMember) {
  const KeyValue self = *view.find(keys.member(worker(1)));
  for (const Revision registered : {0, 1}) {
    const WorkerId ghost = registered == 0 ? worker(9) : worker(1);
    view.replace({{keys.leader(), to_text(LeaderRecord{ghost, registered}), 8, 8, 0}, self}, 9);
    Coordinator waiting{options_of(keys)};
    const Decision first = waiting.step(Looked{}, view, 0, 0);
    ASSERT_EQ(first.effects.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<LookAgain>(first.effects.front()))
        << "its member key may be missing in the view";
    ASSERT_TRUE(first.wake_at);
    const Decision later = waiting.step(Looked{}, view, *first.wake_at + kTicksPerSecond, 0);
    ASSERT_NE(sent(later), nullptr);
    EXPECT_EQ(sent(later)->txn.compares.front(), modified_at(keys.leader(), 8));
    EXPECT_EQ(sent(later)->txn.then.front(), remove(keys.leader())) << "so that the next one's is created anew";
    EXPECT_EQ(sent(later)->txn.compares.back(), created_at(keys.member(ghost), view.created(keys.member(ghost))));
  }
}

// A HEAD of generation 8 was committed by a generation that was there.
TEST_F(Leading, DecidesNothingWhenGenerationAndHeadContradictEachOther) {
  std::vector<KeyValue> items;
  for (const KeyValue* item : view.below(keys.live())) items.push_back(*item);
  items.push_back({keys.head(), to_text(HeadRecord{3, {8}, {64}, std::string(64, 'c'), ""}), 3, 3, 0});
  view.replace(items, 3);
  const Decision damaged = look(0);
  ASSERT_EQ(damaged.effects.size(), 1U);
  EXPECT_NE(std::get<Note>(damaged.effects.front()).event.find("event=records_damaged"), std::string::npos);
  EXPECT_TRUE(look(kTicksPerSecond).effects.empty()) << "it is said once";
}

TEST_F(Leading, DecidesNothingWhenHeadIsForged) {
  std::vector<KeyValue> items;
  for (const KeyValue* item : view.below(keys.live())) items.push_back(*item);
  view.replace(items, 3, {{keys.head(), "", 3, 3, 0}});
  EXPECT_EQ(sent(look(0)), nullptr);
  view.replace(items, 4);
  EXPECT_NE(sent(look(1)), nullptr);
}

// A coordinator that is to open the generation after one whose last worker is gone.
class Reopening : public testing::Test {
 protected:
  explicit Reopening(std::uint64_t workers = 3) {
    GenerationRecord generation;
    generation.roster.attempt = attempt;
    std::vector<scheduler::WorkerInfo> infos;
    for (std::uint64_t number = 1; number <= workers; ++number) infos.push_back({worker(number), "host", 0});
    generation.roster.plan = *wide_plan(infos, nullptr);
    view.replace({{keys.leader(), to_text(LeaderRecord{worker(1), 4}), 2, 2, 0},
                  {keys.generation(), to_text(generation), 3, 3, 0}},
                 3);
    for (std::uint64_t number = 1; number < workers; ++number) add_member(number);
  }

  void add(const std::string& key, const std::string& value) {
    const Revision revision = view.revision() + 1;
    view.apply({{false, {key, value, revision, revision, 0}}});
  }
  void add_member(std::uint64_t number) {
    add(keys.member(worker(number)),
        to_text(MemberRecord{worker(number), "worker", "host", "address", MemberState::kReady, "", 0}));
  }
  void add_held(std::uint64_t number) { add(keys.held(attempt, worker(number)), to_text(HeldRecord{})); }

  // What it sends when all patience is over; the store takes everything before that.
  Txn opening() {
    Tick now = 0;
    for (int step = 0; step < 20; ++step, now += kTicksPerSecond) {
      const Decision decision = coordinator.step(Looked{}, view, now, 0);
      for (const Effect& effect : decision.effects) {
        const auto* send = std::get_if<Send>(&effect);
        if (send == nullptr) continue;
        const bool opens =
            std::ranges::any_of(send->txn.then, [&](const KvOp& op) { return op.key == keys.generation(); });
        if (opens) return send->txn;
        coordinator.step(Replied{send->request, TxnReply{true, view.revision(), {}}}, view, now, 0);
      }
    }
    return {};
  }

  Keys keys{"job"};
  Attempt attempt{{1}, 1};
  View view;
  Coordinator coordinator{options_of(keys)};
};

TEST_F(Reopening, HoldsOnlyWhileNobodySpeaksWhoWasSilent) {
  add_held(1);
  const auto compares = opening().compares;
  EXPECT_THAT(compares, testing::Contains(is_absent(keys.held(attempt, worker(2)))));
  EXPECT_THAT(compares, testing::Not(testing::Contains(is_absent(keys.held(attempt, worker(1))))));
}

class ReopeningMany : public Reopening {
 protected:
  ReopeningMany() : Reopening(121) {}
};

// etcd takes 128 compares in a transaction.
TEST_F(ReopeningMany, ComparesAHundredMembersNewOnesFirst) {
  for (std::uint64_t number = 200; number < 230; ++number) add_member(number);
  const auto compares = opening().compares;
  const auto compared = [&](const Compare& compare) { return compare.key.starts_with(keys.members()); };
  EXPECT_EQ(std::ranges::count_if(compares, compared), 100);
  EXPECT_LE(compares.size(), kMostOps);
  for (std::uint64_t number = 200; number < 230; ++number) {
    const std::string key = keys.member(worker(number));
    EXPECT_THAT(compares, testing::Contains(created_at(key, view.created(key))));
  }
}

}  // namespace
}  // namespace everstep::elastic::test
