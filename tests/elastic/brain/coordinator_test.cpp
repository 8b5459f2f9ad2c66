#include "elastic/coordinator.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

CoordinatorOptions options_of(const Keys& keys) {
  CoordinatorOptions options{
      .keys = keys, .self = worker(1), .first_generation = {7}, .is_authentic = {}, .plan = wide_plan, .nonce = [] {
        return 1U;
      }};
  return options;
}

// One worker, which is ready and leads, and a coordinator that wants to open the job's first generation.
class Leading : public testing::Test {
 protected:
  Leading() {
    const MemberRecord self{worker(1), "worker-1", "host", "address", MemberState::kReady, "", 0, ""};
    view.replace(
        {{keys.leader(), to_text(LeaderRecord{worker(1)}), 2, 2, 0}, {keys.member(worker(1)), to_text(self), 2, 2, 0}},
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
  EXPECT_EQ(opened->group.attempt.generation, Generation{7});
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

}  // namespace
}  // namespace everstep::elastic::test
