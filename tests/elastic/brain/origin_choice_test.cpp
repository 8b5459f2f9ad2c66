#include "elastic/brain/origin_choice.h"

#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using Kind = Origin::Kind;

// Two workers in a row under generation 4, window 8.
GenerationRecord present(std::optional<RosterRecord> from = std::nullopt) {
  GenerationRecord generation;
  generation.roster.attempt = {{4}, 1};
  scheduler::Plan& plan = generation.roster.plan;
  plan.depth = 2;
  plan.window = 8;
  plan.cuts = {0, 2, 4};
  plan.workers = {worker(1), worker(2)};
  generation.from = std::move(from);
  if (generation.from) generation.origin.kind = Kind::kMemory;
  return generation;
}

HeldRecord at(std::int64_t position, std::int64_t generation = 4) {
  return {false, Position{position}, {{generation}}};
}
HeadRecord head(std::int64_t position) { return {3, {2}, {position}, std::string(64, 'a'), ""}; }

// Three in a row, each guards the stage before its own.
GenerationRecord guarded() {
  GenerationRecord generation = present();
  scheduler::Plan& plan = generation.roster.plan;
  plan.depth = 3;
  plan.cuts = {0, 1, 2, 4};
  plan.workers = {worker(1), worker(2), worker(3)};
  plan.guards = {{worker(2)}, {worker(3)}, {worker(1)}};
  return generation;
}

HeldRecord copies(std::vector<HeldCopy> all) { return {false, {}, {}, std::move(all)}; }
HeldCopy complete(std::int64_t position, std::int64_t generation = 4) { return {{generation}, {position}, true, true}; }
HeldCopy owned(std::int64_t position) { return {{4}, {position}, true, false}; }

TEST(OriginChoice, IsTheBeginningWithoutAnything) {
  EXPECT_EQ(choose_origin(std::nullopt, {}, std::nullopt, {}).origin.kind, Kind::kBeginning);
}

TEST(OriginChoice, IsMemoryWhenEveryStageHasItsOwner) {
  const auto choice = choose_origin(present(), {{worker(1), at(16)}, {worker(2), at(16)}}, head(8), {});
  EXPECT_EQ(choice.origin, (Origin{Kind::kMemory, {16}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
}

TEST(OriginChoice, IsHeadWhenAStageIsMissing) {
  EXPECT_EQ(choose_origin(present(), {{worker(1), at(16)}}, head(8), {}).origin.kind, Kind::kCheckpoint);
}

TEST(OriginChoice, IsHeadWhenPositionsDiffer) {
  const auto choice = choose_origin(present(), {{worker(1), at(16)}, {worker(2), at(24)}}, head(8), {});
  EXPECT_EQ(choice.origin, (Origin{Kind::kCheckpoint, {8}, std::string(64, 'a')}));
}

TEST(OriginChoice, IsNeverBehindHead) {
  const auto choice = choose_origin(present(), {{worker(1), at(8)}, {worker(2), at(8)}}, head(16), {});
  EXPECT_EQ(choice.origin.kind, Kind::kCheckpoint);
}

// Found by the simulator: a worker that was past its first update was asked for an origin that it no longer had.
TEST(OriginChoice, IsHeadWhenSomebodyWhoIsThereHasNothing) {
  GenerationRecord wide = present();
  wide.roster.plan.depth = 1;
  wide.roster.plan.width = 2;
  wide.roster.plan.cuts = {0, 4};
  const std::map<WorkerId, HeldRecord> held{{worker(1), at(16)}, {worker(2), {}}};
  EXPECT_EQ(choose_origin(wide, held, head(8), {worker(1), worker(2)}).origin.kind, Kind::kCheckpoint);
  EXPECT_EQ(choose_origin(wide, held, head(8), {worker(1)}).origin.kind, Kind::kMemory);
}

TEST(OriginChoice, InsideAWindowNeedsEverybody) {
  GenerationRecord wide = present();
  wide.roster.plan.depth = 1;
  wide.roster.plan.width = 2;
  wide.roster.plan.cuts = {0, 4};
  EXPECT_EQ(choose_origin(wide, {{worker(1), at(16)}}, std::nullopt, {}).origin.kind, Kind::kMemory);
  EXPECT_EQ(choose_origin(wide, {{worker(1), at(18)}}, std::nullopt, {}).origin.kind, Kind::kBeginning);
  EXPECT_EQ(choose_origin(wide, {{worker(1), at(18)}, {worker(2), at(18)}}, std::nullopt, {}).origin.kind,
            Kind::kMemory);
}

TEST(OriginChoice, IsTheNewestVersionOfWhichEveryStageHasACopy) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), complete(24)})},
                                            {worker(2), copies({complete(16), complete(24)})}};
  const auto choice = choose_origin(guarded(), held, head(8), {worker(1), worker(2)});
  EXPECT_EQ(choice.origin, (Origin{Kind::kCopies, {24}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
  EXPECT_EQ(choice.holders, (std::vector<CopyHolder>{{worker(1), true, true}, {worker(2), true, true}}));
}

// The third is lost, and its guard has not got its newest state yet.
TEST(OriginChoice, IsTheVersionBeforeWhenAGuardIsLate) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(2), copies({complete(16), complete(24)})}};
  EXPECT_EQ(choose_origin(guarded(), held, head(8), {}).origin, (Origin{Kind::kCopies, {16}, {}}));
}

// The second is lost: what the first lacks as a guard, the third has as the owner.
TEST(OriginChoice, TakesWhatTheOwnerHasWhereItsGuardIsLate) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(3), copies({complete(16), complete(24)})}};
  EXPECT_EQ(choose_origin(guarded(), held, head(8), {}).origin, (Origin{Kind::kCopies, {24}, {}}));
}

TEST(OriginChoice, IsHeadWhenAnOwnerAndItsGuardAreLostAtOnce) {
  EXPECT_EQ(choose_origin(guarded(), {{worker(1), copies({complete(16)})}}, head(8), {}).origin.kind,
            Kind::kCheckpoint);
}

TEST(OriginChoice, IsHeadWhenCopiesAreBehindIt) {
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16)})}, {worker(2), copies({complete(16)})}};
  EXPECT_EQ(choose_origin(guarded(), held, head(24), {}).origin.kind, Kind::kCheckpoint);
  EXPECT_EQ(choose_origin(guarded(), held, head(16), {}).origin.kind, Kind::kCopies) << "as new, and quicker to get at";
}

TEST(OriginChoice, IsWhatAnOrderlyStopLeftRatherThanCopiesOfTheSame) {
  HeldRecord both = at(16);
  both.copies = {complete(8), complete(16)};
  const std::map<WorkerId, HeldRecord> held{{worker(1), both}, {worker(2), both}, {worker(3), both}};
  EXPECT_EQ(choose_origin(guarded(), held, head(8), {}).origin.kind, Kind::kMemory);
}

TEST(OriginChoice, IsTheWindowsBeginningWhenSomebodyDiesAfterAStopInsideIt) {
  HeldRecord inside = at(20);
  inside.copies = {complete(8), complete(16)};
  const std::map<WorkerId, HeldRecord> held{{worker(1), inside}, {worker(3), inside}};
  EXPECT_EQ(choose_origin(guarded(), held, head(8), {}).origin, (Origin{Kind::kCopies, {16}, {}}));
}

// Some have made the first update of a generation and forgotten its origin, others have not: all have its copies.
TEST(OriginChoice, IsFoundWhenOnlySomeHaveMadeTheFirstUpdate) {
  GenerationRecord generation = guarded();
  generation.from = generation.roster;
  generation.from->attempt = {{3}, 9};
  generation.origin = {Kind::kCopies, {16}, {}};
  const std::map<WorkerId, HeldRecord> held{{worker(1), copies({complete(16), owned(24)})},
                                            {worker(2), copies({complete(16), complete(8, 3), complete(16, 3)})}};
  const auto choice = choose_origin(generation, held, head(8), {});
  EXPECT_EQ(choice.origin, (Origin{Kind::kCopies, {16}, {}}));
  EXPECT_EQ(choice.from->attempt.generation, Generation{4});
}

TEST(OriginChoice, GoesBackToTheOriginOfAGenerationThatNeverUpdated) {
  RosterRecord before = present().roster;
  before.attempt = {{3}, 9};
  const auto choice = choose_origin(present(before), {{worker(1), at(16, 3)}, {worker(2), at(16, 3)}}, head(8), {});
  EXPECT_EQ(choice.origin.kind, Kind::kMemory);
  EXPECT_EQ(choice.from->attempt.generation, Generation{3});
}

// ---- sums of a group ----

// Two groups of two.
GenerationRecord wide() {
  GenerationRecord generation = present();
  generation.roster.plan.width = 2;
  generation.roster.plan.workers = {worker(1), worker(2), worker(3), worker(4)};
  return generation;
}

HeldRecord sums(std::int64_t position, int group, int rounds, std::int64_t generation = 4) {
  HeldRecord held = copies({owned(position)});
  held.sums = {{generation}, {position}, group, rounds};
  return held;
}

TEST(OriginChoice, IsWhatAGroupKeptIfAllOfItSaySo) {
  const auto choice = choose_origin(
      wide(), {{worker(1), copies({owned(16)})}, {worker(3), sums(16, 1, 2)}, {worker(4), sums(16, 1, 2)}}, head(16),
      {worker(1), worker(3), worker(4)});
  EXPECT_EQ(choice.origin, (Origin{Kind::kSums, {16}, {}, 1, 2}));
  EXPECT_EQ(choice.from, wide().roster);
  EXPECT_TRUE(choice.holders.empty());
}

TEST(OriginChoice, IsCopiesIfThoseOfAGroupSayDifferentThings) {
  const auto kind = [](const HeldRecord& one, const HeldRecord& other) {
    return choose_origin(wide(), {{worker(3), one}, {worker(4), other}}, head(8), {}).origin.kind;
  };
  EXPECT_EQ(kind(sums(16, 1, 2), sums(16, 1, 2)), Kind::kSums);
  EXPECT_EQ(kind(sums(16, 1, 2), sums(16, 1, 1)), Kind::kCopies);
  EXPECT_EQ(kind(sums(16, 1, 2), copies({owned(16)})), Kind::kCopies);
  EXPECT_EQ(kind(sums(16, 0, 2), sums(16, 0, 2)), Kind::kCopies);        // not their group
  EXPECT_EQ(kind(sums(16, 1, 2, 3), sums(16, 1, 2, 3)), Kind::kCopies);  // of another generation
}

TEST(OriginChoice, OfWhatGroupsKeptIsNeverBehindHeadOrNewerCopies) {
  std::map<WorkerId, HeldRecord> held{{worker(3), sums(16, 1, 2)}, {worker(4), sums(16, 1, 2)}};
  EXPECT_EQ(choose_origin(wide(), held, head(20), {}).origin.kind, Kind::kCheckpoint);
  held[worker(1)] = held[worker(2)] = copies({owned(24)});
  EXPECT_EQ(choose_origin(wide(), held, head(8), {}).origin, (Origin{Kind::kCopies, {24}, {}}));
}

TEST(OriginChoice, OfTwoGroupsIsTheOneThatHasRunMost) {
  std::map<WorkerId, HeldRecord> held{{worker(1), sums(16, 0, 1)},
                                      {worker(2), sums(16, 0, 1)},
                                      {worker(3), sums(16, 1, 2)},
                                      {worker(4), sums(16, 1, 2)}};
  EXPECT_EQ(choose_origin(wide(), held, head(8), {}).origin, (Origin{Kind::kSums, {16}, {}, 1, 2}));
}

TEST(OriginChoice, MayBeWhatAGroupKeptOfTheGenerationBefore) {
  GenerationRecord next = present(wide().roster);
  next.roster.attempt = {{5}, 1};
  const auto choice = choose_origin(next, {{worker(3), sums(16, 1, 2)}, {worker(4), sums(16, 1, 2)}}, head(8), {});
  EXPECT_EQ(choice.origin, (Origin{Kind::kSums, {16}, {}, 1, 2}));
  EXPECT_EQ(choice.from, wide().roster);
}

}  // namespace
}  // namespace everstep::elastic::test
