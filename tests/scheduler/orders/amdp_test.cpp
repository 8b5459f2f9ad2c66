#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/orders/orders.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

// One device's round as the design prints it: `head | tail of the previous round | before the update | after it`.
struct PrintedRound {
  int device = 0;
  std::string head;
  std::string tail;
  std::string before_update;
  std::string after_update;
};

// U stands where placement B has it: after the first backward on edge devices, so before F7 on device 0 of 8.
const std::vector<PrintedRound>& printed_at_four() {
  static const std::vector<PrintedRound> rounds = {
      {0, "F0 F2", "B2", "F1 B1", "F3 B3 B0"},
      {3, "F1 F3", "B3", "F0 B0", "F2 B2 B1"},
      {1, "", "", "F0 F1 F2 F3", "B1 B0 B3 B2"},
      {2, "", "", "F1 F0 F3 F2", "B0 B1 B2 B3"},
  };
  return rounds;
}

const std::vector<PrintedRound>& printed_at_eight() {
  static const std::vector<PrintedRound> rounds = {
      {0, "F0 F4", "B4", "F1 F2 F5 F6 F3 B3", "F7 B7 B2 B1 B6 B5 B0"},
      {3, "F1 F5", "B5", "F0 F3 F4 F7 F2 B2", "F6 B6 B3 B0 B7 B4 B1"},
      {4, "F2 F6", "B6", "F3 F0 F7 F4 F1 B1", "F5 B5 B0 B3 B4 B7 B2"},
      {7, "F3 F7", "B7", "F2 F1 F6 F5 F0 B0", "F4 B4 B1 B2 B5 B6 B3"},
      {1, "", "", "F0 F1 F4 F5 F2 F3 F6 F7", "B3 B2 B7 B6 B1 B0 B5 B4"},
      {2, "", "", "F1 F0 F5 F4 F3 F2 F7 F6", "B2 B3 B6 B7 B0 B1 B4 B5"},
      {5, "", "", "F2 F3 F6 F7 F0 F1 F4 F5", "B1 B0 B5 B4 B3 B2 B7 B6"},
      {6, "", "", "F3 F2 F7 F6 F1 F0 F5 F4", "B0 B1 B4 B5 B2 B3 B6 B7"},
  };
  return rounds;
}

// Depth 2: one pipeline, strictly two in flight, the update as everywhere else.
const std::vector<PrintedRound>& printed_at_two() {
  static const std::vector<PrintedRound> rounds = {
      {0, "F0 F1", "B1", "", "B0"},
      {1, "", "", "F0 B0", "F1 B1"},
  };
  return rounds;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty() && !part.empty()) text += ' ';
    text += part;
  }
  return text;
}

// A whole list made of printed rounds: filling, steady rounds, the tail that is left, the last update.
std::string list_of(const PrintedRound& round, int windows, int rounds_per_window, int preload) {
  const std::size_t space = round.head.find(' ');
  const std::string first = preload == 2 ? round.head : round.head.substr(0, space);
  const std::string second = preload == 2 || round.head.empty() ? "" : round.head.substr(space + 1);
  std::vector<std::string> parts;
  for (int r = 0; r < windows * rounds_per_window; ++r) {
    const bool updates = r > 0 && r % rounds_per_window == 0;
    parts.insert(parts.end(),
                 {first, r > 0 ? round.tail : "", second, round.before_update, updates ? "U" : "", round.after_update});
  }
  parts.insert(parts.end(), {round.tail, "U"});
  return join(parts);
}

std::string without_primes(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\''), text.end());
  return text;
}

void expect_printed(int depth, const std::vector<PrintedRound>& printed, int preload, int spliced) {
  ASSERT_EQ(static_cast<int>(printed.size()), depth);
  for (int rounds = 1; rounds <= 3; ++rounds) {
    ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 1, rounds * depth, 3);
    request.preload = preload;
    const Schedule schedule = make_schedule(request).value();
    for (const PrintedRound& round : printed) {
      EXPECT_EQ(without_primes(short_form(schedule.workers[round.device])), list_of(round, 3, rounds, spliced))
          << "device " << round.device << " with " << rounds << " rounds per window";
    }
  }
}

TEST(Amdp, HasThePrintedOrdersAtDepthFour) { expect_printed(4, printed_at_four(), 2, 2); }

TEST(Amdp, HasThePrintedOrdersAtDepthEight) { expect_printed(8, printed_at_eight(), 2, 2); }

TEST(Amdp, RunsOneForwardBeforeTheTailWithPreloadOne) {
  expect_printed(4, printed_at_four(), 1, 1);
  expect_printed(8, printed_at_eight(), 1, 1);
}

TEST(Amdp, UpdatesByTheSameRuleAtDepthTwoAndNeverPreloadsTwoThere) {
  expect_printed(2, printed_at_two(), 1, 1);
  expect_printed(2, printed_at_two(), 2, 1);
}

TEST(Amdp, HasThePrintedRoundAtDepthSixteen) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 16, 1, 16, 1)).value();
  EXPECT_EQ(short_form(schedule.workers[0]),
            "F0 F8 F1 F6 F9 F14 F3 F4 F11 F12 F5 F2 F13 F10 F7 B7 F15 B15 B2 B5 B10 B13 B4 B3 B12 B11 B6 B1 B14 B9 B0 "
            "B8 U");
  EXPECT_EQ(short_form(schedule.workers[1]),
            "F0 F1 F8 F9 F6 F3 F14 F11 F4 F5 F12 F13 F2 F7 F10 F15 B7 B2 B15 B10 B5 B4 B13 B12 B3 B6 B11 B14 B1 B0 B9 "
            "B8 U");
}

// Edge: F F, B of the round before, D - 3 forwards, B, U, F, D - 2 backwards. Inner: D forwards, U, D backwards.
TEST(Amdp, HasTheSameShapeAtEveryDepth) {
  for (int depth = 4; depth <= 64; depth += 4) {
    const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, depth, 1, depth, 2)).value();
    for (int device = 0; device < depth; ++device) {
      std::string kinds;
      for (const Op& op : schedule.workers[device]) {
        if (is_compute(op)) kinds += op.kind == OpKind::kForward ? 'F' : 'B';
        if (op.kind == OpKind::kUpdate) kinds += 'U';
      }
      const std::string middle(depth - 3, 'F');
      const std::string backwards(depth - 2, 'B');
      const std::string edge = "FF" + middle + "BF" + backwards + "FFB" + middle + "BUF" + backwards + "BU";
      const std::string forwards(depth, 'F');
      const std::string inner = forwards + std::string(depth, 'B') + forwards + "U" + std::string(depth, 'B') + "U";
      EXPECT_EQ(kinds, schedule.placement.is_edge(device) ? edge : inner) << "device " << device << " of " << depth;
    }
  }
}

TEST(Amdp, TakesInTheTwoMinibatchesOfAPipelineFirst) {
  for (int depth = 4; depth <= 64; depth += 4) {
    const Placement placement = Placement::make(ScheduleKind::kAmdp, depth).value();
    const auto orders = first_come_order(placement, depth, depth);
    for (int pipeline = 0; pipeline < depth / 2; ++pipeline) {
      const auto& order = orders[placement.device_of(pipeline, 0)];
      for (const int i : {0, 1}) {
        EXPECT_TRUE(order[i].forward);
        EXPECT_EQ(order[i].stage, 0);
        EXPECT_EQ(order[i].minibatch, pipeline + i * depth / 2);
      }
      EXPECT_FALSE(order.back().forward);
      EXPECT_EQ(order.back().stage, 0);
    }
  }
}

TEST(Amdp, OfEveryGroupIsTheSameInFullWindows) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 8, 3, 48, 3)).value();
  for (int device = 0; device < 8; ++device) {
    EXPECT_EQ(schedule.workers[device], schedule.workers[8 + device]);
    EXPECT_EQ(schedule.workers[device], schedule.workers[16 + device]);
  }
}

TEST(AmdpSync, IsAmdpFlushedAfterEveryWindow) {
  for (const int depth : {2, 4, 8, 12}) {
    for (int window = depth; window <= 3 * depth; ++window) {
      for (const int preload : {1, 2}) {
        ScheduleRequest request = request_of(ScheduleKind::kAmdpSync, depth, 1, window, 3);
        request.preload = preload;
        const Schedule twin = make_schedule(request).value();
        request.kind = ScheduleKind::kAmdp;
        request.flush_after = {0, 1};
        EXPECT_EQ(twin.workers, make_schedule(request).value().workers) << describe(request);
      }
    }
  }
}

TEST(Amdp, LeavesOutWhatAPartialRoundDoesNotHave) {
  for (const int depth : {2, 4, 8, 16}) {
    for (int missing = 1; missing < depth; ++missing) {
      const Schedule full = make_schedule(request_of(ScheduleKind::kAmdp, depth, 1, 2 * depth, 3)).value();
      const Schedule partial = make_schedule(request_of(ScheduleKind::kAmdp, depth, 1, 2 * depth - missing, 3)).value();
      for (int device = 0; device < depth; ++device) {
        std::vector<Op> left = full.workers[device];
        std::erase_if(left, [&](const Op& op) { return op.round == 1 && op.minibatch >= depth - missing; });
        EXPECT_EQ(short_form(partial.workers[device]), short_form(left)) << depth << " without " << missing;
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
