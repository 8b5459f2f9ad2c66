#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/handover_chain.h"

// The comparisons of the other tests must be able to fail: each mistake here is one that a handover could make.
namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

void zero(const Buffer& buffer) {
  if (!buffer.empty()) std::memset(buffer.data, 0, buffer.size);
}

// A copy, since what a worker kept for itself still belongs to the origin.
void zero_copy(Buffer& buffer) {
  Buffer copy;
  copy_into(copy, buffer);
  zero(copy);
  buffer = copy;
}

HandoverChain chain_inside_a_window() {
  HandoverChain chain(chain_options(26, 4));
  EXPECT_TRUE(chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(16)}));
  EXPECT_TRUE(chain.is_inside_window());
  EXPECT_EQ(difference_from_undisturbed(chain), "");
  return chain;
}

std::string difference_after(HandoverChain chain, std::function<void(MovedState&)> mistake) {
  chain.change_moved = std::move(mistake);
  const auto end = chain.run({ScheduleKind::kOneFOneB, 3, 1, {1, 2, 3}, {0}, {}});
  EXPECT_TRUE(end) << end.error();
  return difference_from_undisturbed(chain);
}

TEST(HandoverControls, NoMistakeIsNoDifference) {
  EXPECT_EQ(difference_after(chain_inside_a_window(), [](MovedState&) {}), "");
}

TEST(HandoverControls, DroppedGradientsAreNoticed) {
  const auto mistake = [](MovedState& moved) {
    for (auto& [block, tensors] : moved.blocks) zero_copy(tensors.gradients);
  };
  EXPECT_THAT(difference_after(chain_inside_a_window(), mistake), HasSubstr("another update of window 1"));
}

TEST(HandoverControls, TheGradientsOfOneBlockAreMissed) {
  const auto mistake = [](MovedState& moved) {
    const auto found = moved.blocks.find(5);
    if (found != moved.blocks.end()) zero_copy(found->second.gradients);
  };
  EXPECT_THAT(difference_after(chain_inside_a_window(), mistake), HasSubstr("another update of window 1"));
}

TEST(HandoverControls, DroppedMomentsAreNoticed) {
  for (const auto moment : {&MovedState::Tensors::first_moment, &MovedState::Tensors::second_moment}) {
    const auto mistake = [moment](MovedState& moved) {
      for (auto& [block, tensors] : moved.blocks) zero_copy(tensors.*moment);
    };
    EXPECT_NE(difference_after(chain_inside_a_window(), mistake), "");
  }
}

TEST(HandoverControls, AnUpdateThatIsNotCountedIsNoticed) {
  EXPECT_NE(difference_after(chain_inside_a_window(), [](MovedState& moved) { --moved.resume.applied; }), "");
}

TEST(HandoverControls, AForgottenLossIsNoticed) {
  const auto mistake = [](MovedState& moved) { moved.resume.losses[2].loss += 1; };
  EXPECT_NE(difference_after(chain_inside_a_window(), mistake), "");
}

TEST(HandoverControls, AMinibatchThatIsRunAgainIsNoticed) {
  const auto mistake = [](MovedState& moved) {
    --moved.resume.position.value;
    moved.resume.losses.pop_back();
  };
  EXPECT_NE(difference_after(chain_inside_a_window(), mistake), "");
}

TEST(HandoverControls, AForgottenOverflowIsNoticed) {
  HandoverChain chain(chain_options(26, 4));
  chain.poisoned = {26 + 3};
  ASSERT_TRUE(chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(16)}));
  const auto mistake = [](MovedState& moved) { moved.resume.finite = true; };
  EXPECT_THAT(difference_after(std::move(chain), mistake), HasSubstr("another update of window 1"));
}

// The flush set is part of the history: without the window that began drained, another run would be told.
TEST(HandoverControls, AWindowThatIsMissingInTheFlushSetIsNoticed) {
  HandoverChain chain(chain_options(26, 6));
  ASSERT_TRUE(chain.run({ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, {}, after_update(1)}));
  ASSERT_TRUE(chain.run({ScheduleKind::kAmdp, 4, 1, {4, 1, 2, 3}, {0}, {}}));
  ASSERT_EQ(difference_from_reference(chain), "");
  std::vector<HistoryEntry> entries = history_entries(chain);
  ASSERT_EQ(entries[3].window, 3);
  ASSERT_TRUE(entries[3].flushed);
  entries[3].flushed = false;
  EXPECT_NE(difference_from_history(chain, entries), "");
}

TEST(HandoverControls, AStopInsideAWindowThatHistoryDoesNotTellIsNoticed) {
  HandoverChain chain(chain_options(26, 6));
  ASSERT_TRUE(chain.run({ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, {}, after_round(9)}));
  ASSERT_TRUE(chain.is_inside_window());
  ASSERT_TRUE(chain.run({ScheduleKind::kAmdp, 2, 1, {1, 2}, {0, 3}, {}}));
  ASSERT_EQ(difference_from_reference(chain), "");
  std::vector<HistoryEntry> entries = history_entries(chain);
  const auto second = std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry.first > 0; });
  ASSERT_NE(second, entries.end());
  ASSERT_EQ(second->window, 1);
  // As if the generation before had run all of the window, and the next had begun with the one after it.
  std::prev(second)->end = 26;
  entries.erase(second);
  EXPECT_NE(difference_from_history(chain, entries), "");
}

}  // namespace
}  // namespace everstep::trainer
