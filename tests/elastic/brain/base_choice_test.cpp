#include "elastic/base_choice.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using Kind = Base::Kind;

// Two workers in a row under generation 4, window 8.
GenerationRecord present(std::optional<GroupRecord> from = std::nullopt) {
  GenerationRecord generation;
  generation.group.attempt = {{4}, 1};
  scheduler::Plan& plan = generation.group.plan;
  plan.depth = 2;
  plan.window = 8;
  plan.cuts = {0, 2, 4};
  plan.workers = {worker(1), worker(2)};
  generation.from = std::move(from);
  if (generation.from) generation.base.kind = Kind::kMemory;
  return generation;
}

HeldRecord at(std::int64_t position, std::int64_t generation = 4) {
  return {false, Position{position}, {{generation}}};
}
HeadRecord head(std::int64_t position) { return {3, {2}, {position}, std::string(64, 'a'), ""}; }

TEST(BaseChoice, IsTheBeginningWithoutAnything) {
  EXPECT_EQ(choose_base(std::nullopt, {}, std::nullopt, {}).base.kind, Kind::kBeginning);
}

TEST(BaseChoice, IsMemoryWhenEveryStageHasItsOwner) {
  const auto choice = choose_base(present(), {{worker(1), at(16)}, {worker(2), at(16)}}, head(8), {});
  EXPECT_EQ(choice.base, (Base{Kind::kMemory, {16}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
}

TEST(BaseChoice, IsHeadWhenAStageIsMissing) {
  EXPECT_EQ(choose_base(present(), {{worker(1), at(16)}}, head(8), {}).base.kind, Kind::kCheckpoint);
}

TEST(BaseChoice, IsHeadWhenPositionsDiffer) {
  const auto choice = choose_base(present(), {{worker(1), at(16)}, {worker(2), at(24)}}, head(8), {});
  EXPECT_EQ(choice.base, (Base{Kind::kCheckpoint, {8}, std::string(64, 'a')}));
}

TEST(BaseChoice, IsNeverBehindHead) {
  const auto choice = choose_base(present(), {{worker(1), at(8)}, {worker(2), at(8)}}, head(16), {});
  EXPECT_EQ(choice.base.kind, Kind::kCheckpoint);
}

// Found by the simulator: a worker that was past its first update was asked for a base that it no longer had.
TEST(BaseChoice, IsHeadWhenSomebodyWhoIsThereHasNothing) {
  GenerationRecord wide = present();
  wide.group.plan.depth = 1;
  wide.group.plan.width = 2;
  wide.group.plan.cuts = {0, 4};
  const std::map<WorkerId, HeldRecord> held{{worker(1), at(16)}, {worker(2), {}}};
  EXPECT_EQ(choose_base(wide, held, head(8), {worker(1), worker(2)}).base.kind, Kind::kCheckpoint);
  EXPECT_EQ(choose_base(wide, held, head(8), {worker(1)}).base.kind, Kind::kMemory);
}

TEST(BaseChoice, InsideAWindowNeedsEverybody) {
  GenerationRecord wide = present();
  wide.group.plan.depth = 1;
  wide.group.plan.width = 2;
  wide.group.plan.cuts = {0, 4};
  EXPECT_EQ(choose_base(wide, {{worker(1), at(16)}}, std::nullopt, {}).base.kind, Kind::kMemory);
  EXPECT_EQ(choose_base(wide, {{worker(1), at(18)}}, std::nullopt, {}).base.kind, Kind::kBeginning);
  EXPECT_EQ(choose_base(wide, {{worker(1), at(18)}, {worker(2), at(18)}}, std::nullopt, {}).base.kind, Kind::kMemory);
}

TEST(BaseChoice, GoesBackToTheBaseOfAGenerationThatNeverUpdated) {
  GroupRecord before = present().group;
  before.attempt = {{3}, 9};
  const auto choice = choose_base(present(before), {{worker(1), at(16, 3)}, {worker(2), at(16, 3)}}, head(8), {});
  EXPECT_EQ(choice.base.kind, Kind::kMemory);
  EXPECT_EQ(choice.from->attempt.generation, Generation{3});
}

}  // namespace
}  // namespace everstep::elastic::test
