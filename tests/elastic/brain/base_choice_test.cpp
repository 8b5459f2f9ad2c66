#include "elastic/brain/base_choice.h"

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

// Three in a row, each guards the stage before its own.
GenerationRecord guarded() {
  GenerationRecord generation = present();
  scheduler::Plan& plan = generation.group.plan;
  plan.depth = 3;
  plan.cuts = {0, 1, 2, 4};
  plan.workers = {worker(1), worker(2), worker(3)};
  plan.guards = {{worker(2)}, {worker(3)}, {worker(1)}};
  return generation;
}

HeldRecord copies(std::vector<HeldCopy> all) { return {false, {}, {}, std::move(all)}; }
HeldCopy complete(std::int64_t position, std::int64_t generation = 4) { return {{generation}, {position}, true, true}; }
HeldCopy owned(std::int64_t position) { return {{4}, {position}, true, false}; }

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

TEST(BaseChoice, IsTheNewestVersionOfWhichEveryStageHasACopy) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), complete(24)})},
                                            {worker(2), copies({complete(16), complete(24)})}};
  const auto choice = choose_base(guarded(), held, head(8), {worker(1), worker(2)});
  EXPECT_EQ(choice.base, (Base{Kind::kCopies, {24}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
  EXPECT_EQ(choice.holders, (std::vector<CopyHolder>{{worker(1), true, true}, {worker(2), true, true}}));
}

// The third is lost, and its guard has not got its newest state yet.
TEST(BaseChoice, IsTheVersionBeforeWhenAGuardIsLate) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(2), copies({complete(16), complete(24)})}};
  EXPECT_EQ(choose_base(guarded(), held, head(8), {}).base, (Base{Kind::kCopies, {16}, {}}));
}

// The second is lost: what the first lacks as a guard, the third has as the owner.
TEST(BaseChoice, TakesWhatTheOwnerHasWhereItsGuardIsLate) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(3), copies({complete(16), complete(24)})}};
  EXPECT_EQ(choose_base(guarded(), held, head(8), {}).base, (Base{Kind::kCopies, {24}, {}}));
}

TEST(BaseChoice, IsHeadWhenAnOwnerAndItsGuardAreLostAtOnce) {
  EXPECT_EQ(choose_base(guarded(), {{worker(1), copies({complete(16)})}}, head(8), {}).base.kind, Kind::kCheckpoint);
}

TEST(BaseChoice, IsHeadWhenCopiesAreBehindIt) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16)})}, {worker(2), copies({complete(16)})}};
  EXPECT_EQ(choose_base(guarded(), held, head(24), {}).base.kind, Kind::kCheckpoint);
  EXPECT_EQ(choose_base(guarded(), held, head(16), {}).base.kind, Kind::kCopies) << "as new, and quicker to get at";
}

TEST(BaseChoice, IsWhatAnOrderlyStopLeftRatherThanCopiesOfTheSame) {
  HeldRecord both = at(16);
  both.copies = {complete(8), complete(16)};
  const std::map<WorkerId, HeldRecord> held{{worker(1), both}, {worker(2), both}, {worker(3), both}};
  EXPECT_EQ(choose_base(guarded(), held, head(8), {}).base.kind, Kind::kMemory);
}

TEST(BaseChoice, IsTheWindowsBeginningWhenSomebodyDiesAfterAStopInsideIt) {
  HeldRecord inside = at(20);
  inside.copies = {complete(8), complete(16)};
  const std::map<WorkerId, HeldRecord> held{{worker(1), inside}, {worker(3), inside}};
  EXPECT_EQ(choose_base(guarded(), held, head(8), {}).base, (Base{Kind::kCopies, {16}, {}}));
}

// Some have made the first update of a generation and forgotten its base, others have not: all have its copies.
TEST(BaseChoice, IsFoundWhenOnlySomeHaveMadeTheFirstUpdate) {
  GenerationRecord generation = guarded();
  generation.from = generation.group;
  generation.from->attempt = {{3}, 9};
  generation.base = {Kind::kCopies, {16}, {}};
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(2), copies({complete(16), complete(8, 3), complete(16, 3)})}};
  const auto choice = choose_base(generation, held, head(8), {});
  EXPECT_EQ(choice.base, (Base{Kind::kCopies, {16}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
}

TEST(BaseChoice, GoesBackToTheBaseOfAGenerationThatNeverUpdated) {
  GroupRecord before = present().group;
  before.attempt = {{3}, 9};
  const auto choice = choose_base(present(before), {{worker(1), at(16, 3)}, {worker(2), at(16, 3)}}, head(8), {});
  EXPECT_EQ(choice.base.kind, Kind::kMemory);
  EXPECT_EQ(choice.from->attempt.generation, Generation{3});
}

// ---- what a group kept ----

// Two groups of two.
GenerationRecord wide() {
  GenerationRecord generation = present();
  generation.group.plan.width = 2;
  generation.group.plan.workers = {worker(1), worker(2), worker(3), worker(4)};
  return generation;
}

HeldRecord kept(std::int64_t position, int group, int rounds, std::int64_t generation = 4) {
  HeldRecord held = copies({owned(position)});
  held.kept = {{generation}, {position}, group, rounds};
  return held;
}

TEST(BaseChoice, IsWhatAGroupKeptIfAllOfItSaySo) {
  const auto choice =
      choose_base(wide(), {{worker(1), copies({owned(16)})}, {worker(3), kept(16, 1, 2)}, {worker(4), kept(16, 1, 2)}},
                  head(16), {worker(1), worker(3), worker(4)});
  EXPECT_EQ(choice.base, (Base{Kind::kSums, {16}, {}, 1, 2}));
  EXPECT_EQ(choice.from, wide().group);
  EXPECT_TRUE(choice.holders.empty());
}

TEST(BaseChoice, IsCopiesIfThoseOfAGroupSayDifferentThings) {
  const auto kind = [](const HeldRecord& one, const HeldRecord& other) {
    return choose_base(wide(), {{worker(3), one}, {worker(4), other}}, head(8), {}).base.kind;
  };
  EXPECT_EQ(kind(kept(16, 1, 2), kept(16, 1, 2)), Kind::kSums);
  EXPECT_EQ(kind(kept(16, 1, 2), kept(16, 1, 1)), Kind::kCopies);
  EXPECT_EQ(kind(kept(16, 1, 2), copies({owned(16)})), Kind::kCopies);
  EXPECT_EQ(kind(kept(16, 0, 2), kept(16, 0, 2)), Kind::kCopies);        // not their group
  EXPECT_EQ(kind(kept(16, 1, 2, 3), kept(16, 1, 2, 3)), Kind::kCopies);  // of another generation
}

TEST(BaseChoice, OfWhatGroupsKeptIsNeverBehindHeadOrNewerCopies) {
  std::map<WorkerId, HeldRecord> held{{worker(3), kept(16, 1, 2)}, {worker(4), kept(16, 1, 2)}};
  EXPECT_EQ(choose_base(wide(), held, head(20), {}).base.kind, Kind::kCheckpoint);
  held[worker(1)] = held[worker(2)] = copies({owned(24)});
  EXPECT_EQ(choose_base(wide(), held, head(8), {}).base, (Base{Kind::kCopies, {24}, {}}));
}

TEST(BaseChoice, OfTwoGroupsIsTheOneThatHasRunMost) {
  std::map<WorkerId, HeldRecord> held{{worker(1), kept(16, 0, 1)},
                                      {worker(2), kept(16, 0, 1)},
                                      {worker(3), kept(16, 1, 2)},
                                      {worker(4), kept(16, 1, 2)}};
  EXPECT_EQ(choose_base(wide(), held, head(8), {}).base, (Base{Kind::kSums, {16}, {}, 1, 2}));
}

TEST(BaseChoice, MayBeWhatAGroupKeptOfTheGenerationBefore) {
  GenerationRecord next = present(wide().group);
  next.group.attempt = {{5}, 1};
  const auto choice = choose_base(next, {{worker(3), kept(16, 1, 2)}, {worker(4), kept(16, 1, 2)}}, head(8), {});
  EXPECT_EQ(choice.base, (Base{Kind::kSums, {16}, {}, 1, 2}));
  EXPECT_EQ(choice.from, wide().group);
}

}  // namespace
}  // namespace everstep::elastic::test
