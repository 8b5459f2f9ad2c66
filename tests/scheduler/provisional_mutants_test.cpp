#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/validate.h"
#include "tests/scheduler/support.h"

// Schedules with a provisional step that are wrong in one place.
namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

std::string verdict_of(const Schedule& schedule) {
  const Status status = validate(schedule);
  return status ? "valid" : status.error().line();
}

std::vector<Schedule> originals() {
  return {schedule_with_step(ScheduleKind::kAmdp, 4, 0, 12, 3, 1),
          schedule_with_step(ScheduleKind::kAmdp, 2, 0, 6, 3, 1),
          schedule_with_step(ScheduleKind::kClockwork, 4, 2, 10, 3, 2),
          schedule_with_step(ScheduleKind::kClockwork, 3, 1, 9, 3, 3),
          schedule_with_step(ScheduleKind::kClockwork, 6, 3, 18, 2, 1)};
}

void for_each_copy(auto look) {
  for (const Schedule& schedule : originals()) {
    for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
      for (int place = 0; place < std::ssize(schedule.workers[worker]); ++place) {
        if (schedule.workers[worker][place].kind == OpKind::kProvisional) look(schedule, worker, place);
      }
    }
  }
}

TEST(ProvisionalMutants, WithACopyMissingTwiceOrOfAnotherRoundAreRefused) {
  for_each_copy([](const Schedule& schedule, std::size_t worker, int place) {
    Schedule mutant = schedule;
    std::vector<Op>& ops = mutant.workers[worker];
    ops.erase(ops.begin() + place);
    EXPECT_NE(verdict_of(mutant), "valid");
    mutant = schedule;
    ops.insert(ops.begin() + place, Op(ops[place]));
    EXPECT_THAT(verdict_of(mutant), HasSubstr("twice"));
    mutant = schedule;
    --ops[place].round;
    EXPECT_NE(verdict_of(mutant), "valid");
  });
}

// A copy may stand anywhere between the last backward that it holds and the next of its chunk, or the step, whichever
// comes first; nowhere else.
TEST(ProvisionalMutants, WithACopyAnywhereElseAreRefused) {
  int refused = 0;
  for_each_copy([&](const Schedule& schedule, std::size_t worker, int place) {
    const std::vector<Op>& ops = schedule.workers[worker];
    const Op copy = ops[place];
    const auto is_of_chunk = [&](const Op& op) {
      return op.kind == OpKind::kBackward && op.stage == copy.stage && op.window == copy.window;
    };
    int first = place;
    while (!is_of_chunk(ops[first - 1])) --first;
    int last = place;
    while (last + 1 < std::ssize(ops) && !is_of_chunk(ops[last + 1]) &&
           ops[last + 1] != trial_step_of(copy.window, copy.round)) {
      ++last;
    }
    for (int to = 0; to < std::ssize(ops); ++to) {
      Schedule mutant = schedule;
      std::vector<Op>& moved = mutant.workers[worker];
      moved.erase(moved.begin() + place);
      moved.insert(moved.begin() + to, copy);
      const bool harmless = first <= to && to <= last;
      const std::string verdict = verdict_of(mutant);
      EXPECT_EQ(verdict == "valid", harmless) << describe(schedule.request) << " worker " << worker << ": "
                                              << to_string(copy) << " at " << to << ": " << verdict;
      if (!harmless) ++refused;
    }
  });
  EXPECT_GT(refused, 1000);
}

TEST(ProvisionalMutants, WithAStepMissingTwiceOrInAnotherPlaceAreRefused) {
  for (const Schedule& schedule : originals()) {
    for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
      const std::vector<Op>& ops = schedule.workers[worker];
      for (int place = 0; place < std::ssize(ops); ++place) {
        if (ops[place].kind != OpKind::kTrialStep) continue;
        Schedule mutant = schedule;
        mutant.workers[worker].erase(mutant.workers[worker].begin() + place);
        EXPECT_NE(verdict_of(mutant), "valid");
        for (int to = 0; to <= std::ssize(ops); ++to) {
          mutant = schedule;
          std::vector<Op>& changed = mutant.workers[worker];
          changed.insert(changed.begin() + to, Op(ops[place]));
          EXPECT_NE(verdict_of(mutant), "valid") << "twice, at " << to;
        }
        // Behind the copies, and where another window follows before its first op.
        int copied = place;
        while (ops[copied - 1].kind != OpKind::kProvisional) --copied;
        for (int to = 0; to < std::ssize(ops); ++to) {
          const auto enters = [&](const Op& op) { return is_compute(op) && op.window > ops[place].window; };
          const bool too_late = to > place && (std::any_of(ops.begin() + place, ops.begin() + to + 1, enters) ||
                                               ops[to] == update_of(ops[place].window));
          if (to >= copied && !too_late) continue;
          mutant = schedule;
          std::vector<Op>& moved = mutant.workers[worker];
          moved.erase(moved.begin() + place);
          moved.insert(moved.begin() + to, ops[place]);
          EXPECT_NE(verdict_of(mutant), "valid") << describe(schedule.request) << " worker " << worker << " at " << to;
        }
      }
    }
  }
}

// Every device's part of the sums stands before all that waits for them; if one stands behind, that is found.
TEST(ProvisionalMutants, ThatWaitForEachOtherAreRefused) {
  Schedule schedule = schedule_with_step(ScheduleKind::kAmdp, 4, 0, 12, 2, 1);
  std::vector<Op>& ops = schedule.workers[1];
  const auto kind_at = [&](OpKind kind) {
    return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
  };
  const Op copy = *kind_at(OpKind::kProvisional);
  const Op step = *kind_at(OpKind::kTrialStep);
  ops.erase(kind_at(OpKind::kProvisional));
  ops.erase(kind_at(OpKind::kTrialStep));
  const auto next = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return is_compute(op) && op.window == 1; });
  ops.insert(std::next(next), {copy, step});
  EXPECT_THAT(verdict_of(schedule), HasSubstr("provisional weights that others never make"));
}

}  // namespace
}  // namespace everstep::scheduler
