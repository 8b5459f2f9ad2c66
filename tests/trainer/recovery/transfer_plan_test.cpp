#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "trainer/recovery/state_transfer.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

ModelConfig nine_blocks() {
  ModelConfig model;
  model.shape = {"test", scheduler::ModelFamily::kGpt, 7, 2, 1, 2, 2};
  return model;
}

PlanShape shape(ScheduleKind kind, int depth, int width) {
  PlanShape made;
  made.schedule.kind = kind;
  made.schedule.depth = depth;
  made.schedule.width = width;
  const int stages = scheduler::Placement::make(kind, depth).value().stages();
  for (int stage = 0; stage < stages; ++stage) made.cuts.push_back(stage);
  made.cuts.push_back(nine_blocks().blocks());
  return made;
}

std::vector<PlanShape> shapes() {
  std::vector<PlanShape> all;
  for (const int width : {1, 2, 3}) {
    for (const int depth : {2, 4, 8}) {
      for (const auto kind : {ScheduleKind::kAmdp, ScheduleKind::kAmdpSync, ScheduleKind::kTwoDirections}) {
        all.push_back(shape(kind, depth, width));
      }
    }
    for (const int depth : {1, 2, 3, 5}) all.push_back(shape(ScheduleKind::kOneFOneB, depth, width));
  }
  return all;
}

// Who has what, told another way than the product does: from the stages of each device.
std::set<int> holders_of(const PlanShape& plan, int block, BlockPart part) {
  const auto placement = scheduler::Placement::make(plan.schedule.kind, plan.schedule.depth).value();
  int stage = 0;
  while (plan.cuts[stage + 1] <= block) ++stage;
  const bool edge = stage == 0 || stage == placement.stages() - 1;
  std::set<int> workers;
  for (int worker = 0; worker < plan.workers(); ++worker) {
    const int device = worker % plan.schedule.depth;
    const std::vector<int>& stages = placement.stages_on(device);
    if (std::find(stages.begin(), stages.end(), stage) == stages.end()) continue;
    if (part != BlockPart::kWeights && placement.device_of(0, stage) != device) continue;
    const int writer_group = edge ? 0 : stage % plan.schedule.width;
    if (part == BlockPart::kGradients && worker / plan.schedule.depth != writer_group) continue;
    workers.insert(worker);
  }
  return workers;
}

// Some of the workers before stay at any place, some only hand over, some are gone.
TransferRequest any_change() {
  const std::vector<PlanShape> all = shapes();
  TransferRequest change;
  change.before = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  change.after = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  change.inside_window = *rc::gen::arbitrary<bool>();
  std::vector<int> places;
  for (int i = 0; i < change.after.workers(); ++i) places.push_back(i);
  int connected = change.after.workers();
  for (int i = 0; i < change.before.workers(); ++i) {
    const int fate = *rc::gen::inRange(0, 3);
    if (fate == 2) {
      change.holders.push_back(-1);
    } else if (fate == 1 || places.empty()) {
      change.holders.push_back(connected++);
    } else {
      const auto place = places.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(places));
      change.holders.push_back(*place);
      places.erase(place);
    }
  }
  return change;
}

// Numbers in the new transport of those who have a part.
using WhoHas = std::function<std::set<int>(int block, BlockPart part)>;

void check_moves(const TransferRequest& request, const WhoHas& who_has) {
  const auto moves = plan_transfer(request, nine_blocks());
  std::set<std::tuple<int, BlockPart, int>> brought;
  bool is_lost = false;
  for (int block = 0; block < nine_blocks().blocks(); ++block) {
    for (const BlockPart part : {BlockPart::kWeights, BlockPart::kOptimizer, BlockPart::kGradients}) {
      if (part == BlockPart::kGradients && !request.inside_window) continue;
      const std::set<int> holders = who_has(block, part);
      is_lost = is_lost || holders.empty();
      if (!moves) continue;
      const std::set<int> needed = holders_of(request.after, block, part);
      for (const BlockMove& move : *moves) {
        if (move.block != block || move.part != part) continue;
        RC_ASSERT(needed.count(move.to) == 1U);
        RC_ASSERT(holders.count(move.from) == 1U);
        RC_ASSERT(holders.count(move.to) == 0U || move.from == move.to);
        RC_ASSERT(brought.insert({block, part, move.to}).second);
      }
      for (const int worker : needed) RC_ASSERT(brought.count({block, part, worker}) == 1U);
    }
  }
  RC_ASSERT(moves.ok() == !is_lost);
  if (moves) RC_ASSERT(brought.size() == moves->size());
}

RC_GTEST_PROP(TransferPlan, BringsEveryPartOnceToWhoeverNeedsItFromOneWhoHasIt, ()) {
  const TransferRequest change = any_change();
  check_moves(change, [&](int block, BlockPart part) {
    std::set<int> holders;
    for (const int old : holders_of(change.before, block, part)) {
      if (change.holders[old] >= 0) holders.insert(change.holders[old]);
    }
    return holders;
  });
}

// Up to two guards per stage; owners and guards have the version complete or not.
void keep_in_copies(TransferRequest& request) {
  request.inside_window = false;
  CopyMap& copies = request.copies.emplace();
  for (int worker = 0; worker < request.before.workers(); ++worker) {
    copies.complete.push_back({*rc::gen::inRange(0, 4) > 0, *rc::gen::inRange(0, 4) > 0});
  }
  for (std::size_t stage = 0; stage + 1 < request.before.cuts.size(); ++stage) {
    const std::set<int> owners = holders_of(request.before, request.before.cuts[stage], BlockPart::kOptimizer);
    std::set<int> guards;
    for (int i = 0; i < 2; ++i) guards.insert(*rc::gen::inRange(0, request.before.workers()));
    for (const int owner : owners) guards.erase(owner);
    copies.guards.emplace_back(guards.begin(), guards.end());
  }
}

RC_GTEST_PROP(TransferPlan, TakesAnOriginInCopiesFromOwnersAndGuardsThatHaveItComplete, ()) {
  TransferRequest request = any_change();
  keep_in_copies(request);
  const CopyMap& copies = *request.copies;
  check_moves(request, [&](int block, BlockPart) {
    std::size_t stage = 0;
    while (request.before.cuts[stage + 1] <= block) ++stage;
    std::set<int> holders;
    for (const int owner : holders_of(request.before, block, BlockPart::kOptimizer)) {
      if (copies.complete[owner].owned) holders.insert(request.holders[owner]);
    }
    for (const int guard : copies.guards[stage]) {
      if (copies.complete[guard].guarded) holders.insert(request.holders[guard]);
    }
    holders.erase(-1);
    return holders;
  });
}

TEST(TransferPlan, SpreadsTheSendingOverAllHolders) {
  TransferRequest request{shape(ScheduleKind::kOneFOneB, 1, 3), {3, 4, 5}, shape(ScheduleKind::kOneFOneB, 1, 3), false};
  std::map<int, int> sends;
  const std::vector<BlockMove> moves = plan_transfer(request, nine_blocks()).value();
  for (const BlockMove& move : moves) ++sends[move.from];
  EXPECT_EQ(sends.size(), 3U);
  for (const auto& [holder, count] : sends) EXPECT_GE(count, 9) << holder;
}

TEST(TransferPlan, MovesNothingIfNothingChanges) {
  const PlanShape same = shape(ScheduleKind::kAmdp, 4, 2);
  const auto moves = plan_transfer({same, {0, 1, 2, 3, 4, 5, 6, 7}, same, true}, nine_blocks()).value();
  for (const BlockMove& move : moves) EXPECT_EQ(move.from, move.to);
  EXPECT_FALSE(moves.empty());
}

TEST(TransferPlan, NamesABlockThatNobodyHolds) {
  const PlanShape before = shape(ScheduleKind::kAmdp, 4, 1);
  // All weights are left on the others, but the optimizer state of stage 2 was on device 2 alone.
  const auto moves = plan_transfer({before, {0, 1, -1, 2}, shape(ScheduleKind::kOneFOneB, 3, 1), false}, nine_blocks());
  ASSERT_FALSE(moves.ok());
  EXPECT_EQ(moves.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(moves.error().message, HasSubstr("optimizer state of block 2"));
}

TEST(TransferPlan, TakesNoWeightsFromReplicasIfTheOriginIsInCopies) {
  const PlanShape before = shape(ScheduleKind::kAmdp, 4, 1);
  TransferRequest request{before, {0, 1, -1, 2}, shape(ScheduleKind::kOneFOneB, 3, 1)};
  const CopyParts both{true, true};
  request.copies = CopyMap{{{1}, {0}, {}, {0}}, {both, both, both, both}};
  const auto lost = plan_transfer(request, nine_blocks());
  ASSERT_FALSE(lost.ok()) << "device 0 has a replica of stage 2, perhaps of another version";
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(lost.error().message, HasSubstr("weights of block 2"));
  request.copies->guards[2] = {3};
  EXPECT_TRUE(plan_transfer(request, nine_blocks()).ok());
  request.copies->complete[3].guarded = false;
  EXPECT_FALSE(plan_transfer(request, nine_blocks()).ok());
}

TEST(TransferPlan, TakesTheOwnerStateOfAnotherGroup) {
  const PlanShape before = shape(ScheduleKind::kOneFOneB, 2, 2);
  EXPECT_TRUE(plan_transfer({before, {-1, 0, 1, -1}, shape(ScheduleKind::kOneFOneB, 2, 1), false}, nine_blocks()).ok());
  const auto inside =
      plan_transfer({before, {-1, 0, 1, -1}, shape(ScheduleKind::kOneFOneB, 2, 1), true}, nine_blocks());
  ASSERT_FALSE(inside.ok());
  EXPECT_THAT(inside.error().message, HasSubstr("gradients of block 0"));
}

// The group alone is the plan before: its owners have the sums, whichever group it was.
TEST(TransferPlan, MovesTheSumsThatOneGroupKept) {
  TransferRequest change{shape(ScheduleKind::kOneFOneB, 2, 1), {1, 2}, shape(ScheduleKind::kOneFOneB, 3, 1)};
  change.is_group_sums = true;
  const auto moves = plan_transfer(change, nine_blocks());
  ASSERT_TRUE(moves.ok()) << moves.error();
  const auto sums = std::count_if(moves->begin(), moves->end(),
                                  [](const BlockMove& move) { return move.part == BlockPart::kGradients; });
  EXPECT_EQ(sums, 9);
}

}  // namespace
}  // namespace everstep::trainer
