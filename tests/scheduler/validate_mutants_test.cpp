#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/validate.h"
#include "tests/scheduler/naive_run.h"
#include "tests/scheduler/support.h"

// validate has teeth: whatever is done to a valid schedule, it is refused, or the dumb simulator finds it harmless.
namespace everstep::scheduler {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

Schedule made(ScheduleKind kind, int depth, int width, int window, int windows, int capture, int stop, int flush) {
  ScheduleRequest request = request_of(kind, depth, width, window, windows);
  request.capture_every_rounds = capture;
  if (stop > 0) request.stop_after_rounds = stop;
  if (flush >= 0) request.flush_after = {flush};
  return make_schedule(request).value();
}

// Small, so that every mutant of them can be looked at, and different in kind.
const std::vector<Schedule>& originals() {
  static const std::vector<Schedule> schedules = {
      made(ScheduleKind::kAmdp, 2, 1, 3, 3, 0, 0, -1),
      made(ScheduleKind::kAmdp, 2, 2, 5, 2, 0, 0, -1),
      made(ScheduleKind::kAmdp, 4, 1, 5, 2, 1, 0, -1),
      made(ScheduleKind::kAmdp, 4, 1, 9, 1, 1, 2, -1),
      made(ScheduleKind::kAmdp, 4, 1, 4, 2, 0, 0, 0),
      made(ScheduleKind::kAmdpSync, 4, 1, 5, 2, 0, 0, -1),
      made(ScheduleKind::kOneFOneB, 3, 1, 4, 2, 1, 0, -1),
      made(ScheduleKind::kOneFOneB, 1, 2, 3, 2, 1, 0, -1),
      made(ScheduleKind::kTwoDirections, 4, 1, 6, 1, 1, 0, -1),
      made(ScheduleKind::kGpipe, 2, 1, 3, 2, 0, 0, -1),
      made(ScheduleKind::kInterleaved, 2, 1, 3, 2, 1, 0, -1),
      made(ScheduleKind::kPipedream2bw, 3, 1, 4, 3, 0, 0, -1),
      made(ScheduleKind::kClockwork, 2, 1, 3, 3, 0, 0, -1),
      made(ScheduleKind::kClockwork, 3, 1, 4, 2, 1, 0, -1),
      made(ScheduleKind::kClockwork, 4, 1, 5, 2, 1, 0, -1),
      made(ScheduleKind::kClockwork, 4, 1, 7, 2, 1, 2, -1),
      made(ScheduleKind::kClockwork, 2, 2, 5, 2, 0, 0, -1),
      made(ScheduleKind::kClockworkSync, 4, 1, 5, 2, 0, 0, -1),
  };
  return schedules;
}

// Calls `look` with every place of every original.
void for_each_op(auto look) {
  for (const Schedule& schedule : originals()) {
    SCOPED_TRACE(describe(schedule.request));
    ASSERT_TRUE(validate(schedule));
    for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
      for (int place = 0; place < static_cast<int>(schedule.workers[worker].size()); ++place) {
        look(schedule, worker, place);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

std::string verdict_on_mutant(const Schedule& schedule) {
  const Status status = validate(schedule);
  return status ? "valid" : status.error().line();
}

Schedule without(Schedule schedule, int worker, int place) {
  schedule.workers[worker].erase(schedule.workers[worker].begin() + place);
  return schedule;
}

Schedule with(Schedule schedule, int worker, int place, const Op& op) {
  std::vector<Op>& ops = schedule.workers[worker];
  ops.insert(ops.begin() + std::min<std::ptrdiff_t>(place, std::ssize(ops)), op);
  return schedule;
}

std::string partner_of(Op op) {
  op.kind = op.kind == OpKind::kForward ? OpKind::kBackward : OpKind::kForward;
  return to_string(op);
}

TEST(ValidateMutants, WithoutAnOpAreRefusedAndTheOpIsNamed) {
  for_each_op([](const Schedule& schedule, int worker, int place) {
    const Op& op = schedule.workers[worker][place];
    const std::string verdict = verdict_on_mutant(without(schedule, worker, place));
    // Of a forward that is missing, the backward is the first op that is wrong.
    EXPECT_THAT(verdict, HasSubstr(op.kind == OpKind::kForward ? partner_of(op) : to_string(op)));
    EXPECT_THAT(verdict, HasSubstr("worker " + std::to_string(worker)));
  });
}

TEST(ValidateMutants, WithAnOpTwiceAreRefusedAndTheOpIsNamed) {
  for_each_op([](const Schedule& schedule, int worker, int place) {
    const Op& op = schedule.workers[worker][place];
    for (int again = 0; again <= static_cast<int>(schedule.workers[worker].size()); ++again) {
      const std::string verdict = verdict_on_mutant(with(schedule, worker, again, op));
      EXPECT_THAT(verdict, AnyOf(HasSubstr(to_string(op)), HasSubstr(partner_of(op))));
      EXPECT_THAT(verdict, HasSubstr("worker " + std::to_string(worker)));
    }
  });
}

TEST(ValidateMutants, WithAnOpOnAnotherWorkerAreRefusedAndTheOpIsNamed) {
  for_each_op([](const Schedule& schedule, int worker, int place) {
    const Op& op = schedule.workers[worker][place];
    for (int other = 0; other < static_cast<int>(schedule.workers.size()); ++other) {
      if (other == worker) continue;
      const std::string verdict = verdict_on_mutant(with(without(schedule, worker, place), other, place, op));
      EXPECT_THAT(verdict, AnyOf(HasSubstr(to_string(op)), HasSubstr(partner_of(op))));
    }
  });
}

TEST(ValidateMutants, WithAnotherNumberInAnOpAreRefused) {
  for_each_op([](const Schedule& schedule, int worker, int place) {
    for (const int change : {-1, 1, 1'000'000'000}) {
      for (int field = 0; field < 4; ++field) {
        Schedule mutant = schedule;
        Op& op = mutant.workers[worker][place];
        if (field == 0) op.stage += change;
        if (field == 1) op.minibatch += change;
        if (field == 2) op.round += change;
        if (field == 3) op.window += change;
        ASSERT_NE(verdict_on_mutant(mutant), "valid") << to_string(op);
      }
    }
  });
}

// What became of the mutants of one operator.
struct Tally {
  int refused = 0;
  int accepted = 0;

  void judge(const Schedule& mutant) {
    const std::string verdict = verdict_on_mutant(mutant);
    const NaiveReport naive = run_naively(mutant, SeededCosts{1});
    ++(verdict == "valid" ? accepted : refused);
    if (verdict == "valid") {
      EXPECT_TRUE(naive.harmless()) << "accepted, but " << naive.problems.front() << "\n" << to_string(mutant);
    } else if (verdict.find("stands where") == std::string::npos) {
      // Several orders of collectives and updates would do, and validate knows only one of them; all else it refuses
      // must be wrong.
      EXPECT_FALSE(naive.harmless()) << "refused a harmless one: " << verdict << "\n" << to_string(mutant);
    }
  }

  // The counts go into the test's report. Mutants that no one accepts, or no one refuses, would prove nothing.
  void report() const {
    ::testing::Test::RecordProperty("refused", refused);
    ::testing::Test::RecordProperty("accepted_and_harmless", accepted);
    EXPECT_GT(refused, 0);
    EXPECT_GT(accepted, 0);
  }
};

TEST(ValidateMutants, WithTwoOpsSwappedAreRefusedOrHarmless) {
  Tally tally;
  for_each_op([&](const Schedule& schedule, int worker, int place) {
    for (int other = place + 1; other < static_cast<int>(schedule.workers[worker].size()); ++other) {
      Schedule mutant = schedule;
      std::swap(mutant.workers[worker][place], mutant.workers[worker][other]);
      tally.judge(mutant);
    }
  });
  tally.report();
}

// Updates one backward earlier or later, reduces and captures too early, and everything else that has one place.
TEST(ValidateMutants, WithAnOpMovedAreRefusedOrHarmless) {
  Tally tally;
  for_each_op([&](const Schedule& schedule, int worker, int place) {
    const Op& op = schedule.workers[worker][place];
    const Schedule rest = without(schedule, worker, place);
    for (int to = 0; to < static_cast<int>(schedule.workers[worker].size()); ++to) {
      if (to != place) tally.judge(with(rest, worker, to, op));
    }
  });
  tally.report();
}

// In clockwork nothing but a capture can move: every op has its slot.
TEST(ValidateMutants, OfClockworkWithAnOpOrAnUpdateOneSlotOffAreRefused) {
  for (const Schedule& schedule : originals()) {
    if (!is_clockwork(schedule.request.kind)) continue;
    int mutants = 0;
    for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
      std::vector<std::size_t> timed;  // places of forwards, backwards and updates
      for (std::size_t place = 0; place < schedule.workers[worker].size(); ++place) {
        const Op& op = schedule.workers[worker][place];
        if (is_compute(op) || op.kind == OpKind::kUpdate) timed.push_back(place);
      }
      for (std::size_t i = 0; i + 1 < timed.size(); ++i, ++mutants) {
        Schedule mutant = schedule;
        std::swap(mutant.workers[worker][timed[i]], mutant.workers[worker][timed[i + 1]]);
        EXPECT_NE(verdict_on_mutant(mutant), "valid") << describe(schedule.request) << " worker " << worker;
      }
    }
    EXPECT_GT(mutants, 0);
  }
}

// The same round one pipeline or one round further: every op is there, but not where it belongs or not in its slot.
TEST(ValidateMutants, OfClockworkWithARoundDealtWronglyAreRefused) {
  const Schedule schedule = made(ScheduleKind::kClockwork, 4, 1, 8, 2, 0, 0, -1);
  ASSERT_EQ(verdict_on_mutant(schedule), "valid");
  Schedule other_pipelines = schedule;
  Schedule other_rounds = schedule;
  for (int worker = 0; worker < 4; ++worker) {
    for (Op& op : other_pipelines.workers[worker]) {
      if (is_compute(op) && op.window == 0 && op.round == 1) op.minibatch = 1 - op.minibatch;
    }
    for (Op& op : other_rounds.workers[worker]) {
      if (is_compute(op) && op.window == 0 && (op.round == 1 || op.round == 2)) op.round = 3 - op.round;
    }
  }
  EXPECT_THAT(verdict_on_mutant(other_pipelines), HasSubstr("does not belong there"));
  EXPECT_THAT(verdict_on_mutant(other_rounds), HasSubstr("later slot"));
}

TEST(ValidateMutants, WithTwoOpsSwappedAtRandomInLargeSchedulesAreRefusedOrHarmless) {
  Tally tally;
  for (const int depth : {8, 12}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      const Schedule schedule = made(kind, depth, 1, depth + 3, 2, 1, 0, -1);
      const RandomStream random(static_cast<std::uint64_t>(depth), static_cast<std::uint64_t>(kind));
      for (std::uint64_t draw = 0; draw < 60; ++draw) {
        Schedule mutant = schedule;
        std::vector<Op>& ops = mutant.workers[random.below(3 * draw, mutant.workers.size())];
        // Half of them swap neighbours: swaps at random hardly ever survive.
        const std::uint64_t place = random.below(3 * draw + 1, ops.size() - 1);
        const std::uint64_t other = draw % 2 == 0 ? place + 1 : random.below(3 * draw + 2, ops.size());
        std::swap(ops[place], ops[other]);
        tally.judge(mutant);
      }
    }
  }
  tally.report();
}

// Several moves at once reach what one move cannot, such as two errors that make up for each other in a sum.
TEST(ValidateMutants, WithSeveralOpsMovedALittleAreRefusedOrHarmless) {
  Tally tally;
  for (std::size_t index = 0; index < originals().size(); ++index) {
    const RandomStream random(index, 3);
    std::uint64_t draws = 0;
    const auto below = [&](std::int64_t bound) {
      return static_cast<std::ptrdiff_t>(random.below(draws++, static_cast<std::uint64_t>(bound)));
    };
    for (int mutants = 0; mutants < 400; ++mutants) {
      Schedule mutant = originals()[index];
      for (std::ptrdiff_t moves = 2 + below(2); moves > 0; --moves) {
        std::vector<Op>& ops = mutant.workers[below(std::ssize(mutant.workers))];
        const std::ptrdiff_t from = below(std::ssize(ops));
        const std::ptrdiff_t to = std::clamp<std::ptrdiff_t>(from + below(7) - 3, 0, std::ssize(ops) - 1);
        const Op op = ops[from];
        ops.erase(ops.begin() + from);
        ops.insert(ops.begin() + to, op);
      }
      tally.judge(mutant);
    }
  }
  tally.report();
}

}  // namespace
}  // namespace everstep::scheduler
