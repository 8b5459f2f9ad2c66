#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/support.h"

// The invariants of the design, for every depth up to 32 and every kind that has a placement there.
//
// The full product of depths, widths, window sizes, starts, stops, captures and preloads explodes. It is thinned where
// factors do not meet: windows of a synchronous kind stand alone, so one is enough; a first slice depends on M - k only
// (proved in schedule_test), so starts need no product with M beyond slices shorter than a super-round; each group runs
// the order of a full round with a suffix of minibatches left out, so at large widths only M mod D and the number of
// groups that come off short matter. Each factor alone is complete.
namespace everstep::scheduler {
namespace {

constexpr int kDeepest = 32;

class Invariants : public ::testing::TestWithParam<ScheduleKind> {
 protected:
  static ScheduleKind kind() { return GetParam(); }

  static std::vector<int> depths(int deepest) {
    std::vector<int> depths;
    for (int depth = 1; depth <= deepest; ++depth) {
      if (exists_at(kind(), depth)) depths.push_back(depth);
    }
    return depths;
  }

  // Both matter to AMDP only.
  static std::vector<int> preloads(int depth, int deepest_for_both) {
    const bool amdp = kind() == ScheduleKind::kAmdp || kind() == ScheduleKind::kAmdpSync;
    return amdp && depth > 2 && depth <= deepest_for_both ? std::vector{1, 2} : std::vector{2};
  }

  static int windows() { return is_asynchronous(kind()) ? 2 : 1; }
};

// Mismatched pairs and minibatches of each window, as the design counts them: in a window that follows another without
// a drain, all stages but the last of all minibatches of round 0.
std::string version_flaw_of(const Schedule& schedule, const VersionTable& table) {
  const ScheduleRequest& request = schedule.request;
  if (is_clockwork(request.kind)) return "";  // clockwork_invariants_test looks at every shape
  std::map<std::int64_t, int> pairs;
  std::map<std::int64_t, std::set<std::tuple<int, int>>> minibatches;
  for (const Mismatch& mismatch : table.mismatches) {
    const Op& op = mismatch.backward;
    if (op.round != 0 || op.stage == schedule.placement.stages() - 1) return to_string(op) + " must not mismatch";
    if (mismatch.forward_version.value != op.window - 1 || mismatch.backward_version.value != op.window) {
      return to_string(op) + " has the wrong versions";
    }
    ++pairs[op.window];
    minibatches[op.window].insert({mismatch.group, op.minibatch});
  }
  for (const WindowSlice& slice : schedule.slices) {
    const auto& flushes = request.flush_after;
    const bool touched = request.kind == ScheduleKind::kAmdp && slice.window != request.first_window &&
                         std::count(flushes.begin(), flushes.end(), slice.window - 1) == 0;
    const int expected = touched ? request.depth * request.width : 0;
    if (static_cast<int>(minibatches[slice.window].size()) != expected) return "wrong number of touched minibatches";
    if (pairs[slice.window] != expected * (request.depth - 1)) return "wrong number of touched pairs";
  }
  return "";
}

std::string gradient_flaw_of(const Schedule& schedule, const VersionTable& table) {
  const int stages = schedule.placement.stages();
  std::size_t complete = 0;
  for (const WindowSlice& slice : schedule.slices) {
    if (!slice.complete) continue;
    ++complete;
    for (int stage = 0; stage < stages; ++stage) {
      const auto applied = table.applied.find({slice.window, stage});
      if (applied == table.applied.end() || applied->second != slice.end - slice.first) return "a sum is not M";
    }
  }
  return table.applied.size() == complete * stages ? "" : "an update that no window has";
}

// Two gradient buffers are needed at the last stage only, and there everywhere once two full windows met.
std::string buffer_flaw_of(const Schedule& schedule, const VersionTable& table) {
  const ScheduleRequest& request = schedule.request;
  if (is_clockwork(request.kind)) return "";
  const bool windows_meet =
      request.kind == ScheduleKind::kAmdp && static_cast<int>(request.flush_after.size()) < request.windows - 1;
  const int last = schedule.placement.stages() - 1;
  for (const auto& [worker, stage] : table.doubly_buffered) {
    if (!windows_meet || stage != last) return "stage " + std::to_string(stage) + " needs two buffers";
  }
  const bool full = request.first_minibatch == 0 || request.windows > 2;
  const std::size_t chunks = schedule.placement.replicas_of(last).size() * request.width;
  return !windows_meet || !full || table.doubly_buffered.size() == chunks ? "" : "a last stage has one buffer only";
}

// Collectives of all members of a mirror group, over all groups, and the order of stages inside one window or round.
std::string collective_flaw_of(const Schedule& schedule) {
  std::map<int, std::vector<Op>> by_mirror_group;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    std::vector<Op> collectives;
    for (const Op& op : schedule.workers[worker]) {
      if (op.kind != OpKind::kStartReduce && op.kind != OpKind::kCapture) continue;
      if (!collectives.empty()) {
        const Op& before = collectives.back();
        const bool same = before.kind == op.kind && before.window == op.window && before.round == op.round;
        if (same && before.stage <= op.stage) return to_string(op) + " is not in descending order";
      }
      collectives.push_back(op);
    }
    const int mirror_group = schedule.placement.mirror_group_of(schedule.device_of(worker));
    const auto [first, fresh] = by_mirror_group.emplace(mirror_group, collectives);
    if (!fresh && first->second != collectives) return "worker " + std::to_string(worker) + " has its own order";
  }
  return "";
}

std::string in_flight_flaw_of(const Schedule& schedule) {
  const int depth = schedule.depth();
  const bool amdp = schedule.request.kind == ScheduleKind::kAmdp || schedule.request.kind == ScheduleKind::kAmdpSync;
  if (!amdp) return "";  // validate knows the bounds of the others
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const bool edge = schedule.placement.is_edge(schedule.device_of(worker));
    const int at_most = edge && depth > 2 ? depth - 1 : depth;
    int on_device = 0;
    int at_first_stage = 0;
    for (const Op& op : schedule.workers[worker]) {
      const int change = op.kind == OpKind::kForward ? 1 : op.kind == OpKind::kBackward ? -1 : 0;
      on_device += change;
      if (op.stage == 0) at_first_stage += change;
      if (on_device > at_most) return to_string(op) + " is one too many on its device";
      if (at_first_stage > (depth == 2 ? 2 : schedule.request.preload + 1)) return to_string(op) + " is one too many";
    }
  }
  return "";
}

// Everything that must hold for any request; empty if it does.
std::string flaw_of(const ScheduleRequest& request) {
  const auto schedule = make_schedule(request);
  if (!schedule) return schedule.error().line();
  if (const Status valid = validate(*schedule); !valid) return valid.error().line();
  const VersionTable table = trace_versions(*schedule);
  for (const std::string& flaw :
       {version_flaw_of(*schedule, table), gradient_flaw_of(*schedule, table), buffer_flaw_of(*schedule, table),
        collective_flaw_of(*schedule), in_flight_flaw_of(*schedule)}) {
    if (!flaw.empty()) return flaw;
  }
  return "";
}

TEST_P(Invariants, HoldForEveryWindowSizeUpToFourRounds) {
  for (const int depth : depths(kDeepest)) {
    for (int window = depth; window <= 4 * depth; ++window) {
      for (const int preload : preloads(depth, 16)) {
        ScheduleRequest request = request_of(kind(), depth, 1, window, windows());
        request.preload = preload;
        ASSERT_EQ(flaw_of(request), "") << describe(request);
      }
    }
  }
}

TEST_P(Invariants, HoldForSeveralGroups) {
  for (const int depth : depths(kDeepest)) {
    for (const int width : {2, 3}) {
      const int super_round = depth * width;
      for (int window = super_round; window <= 4 * super_round; ++window) {
        const int inside = window % depth;
        const bool representative = window <= 2 * super_round && (inside <= 1 || inside == depth - 1);
        if (depth > 8 && !representative) continue;
        const ScheduleRequest request = request_of(kind(), depth, width, window, windows());
        ASSERT_EQ(flaw_of(request), "") << describe(request);
      }
    }
  }
}

TEST_P(Invariants, HoldForEveryStartInsideAWindow) {
  for (const int depth : depths(kDeepest)) {
    for (int width = 1; width <= (depth <= 8 ? 3 : 1); ++width) {
      const int super_round = depth * width;
      for (int left = 1; left <= super_round; ++left) {
        for (const int window : {super_round, super_round + 1}) {
          ScheduleRequest request = request_of(kind(), depth, width, window, windows());
          request.first_window = left;
          request.first_minibatch = window - left;
          ASSERT_EQ(flaw_of(request), "") << describe(request);
        }
      }
    }
  }
}

TEST_P(Invariants, HoldForEveryStopAndForCaptures) {
  for (const int depth : depths(kDeepest)) {
    for (int width = 1; width <= (depth <= 8 ? 3 : 1); ++width) {
      const int super_round = depth * width;
      for (const int window : {4 * super_round, 4 * super_round - 1, 2 * super_round + 1}) {
        for (int stop = 1; stop <= 4; ++stop) {
          for (const int first : {0, super_round + 1}) {
            ScheduleRequest request = request_of(kind(), depth, width, window, windows());
            request.first_minibatch = first;
            request.stop_after_rounds = stop;
            request.capture_every_rounds = (stop + first) % 4;
            ASSERT_EQ(flaw_of(request), "") << describe(request);
          }
        }
      }
    }
  }
}

TEST_P(Invariants, HoldForManyWindowsAndFlushes) {
  for (const int depth : depths(16)) {
    for (int flushes = 0; flushes < 8; ++flushes) {
      ScheduleRequest request = request_of(kind(), depth, 1, depth + depth / 2, 4);
      request.first_window = 7;
      for (int bit = 0; bit < 3; ++bit) {
        if ((flushes >> bit & 1) != 0) request.flush_after.push_back(7 + bit);
      }
      ASSERT_EQ(flaw_of(request), "") << describe(request);
    }
  }
}

// What the loops above leave out of the product, at random.
TEST_P(Invariants, HoldForRandomRequests) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, static_cast<std::uint64_t>(kind()));
    std::uint64_t draws = 0;
    const auto below = [&](int bound) {
      return static_cast<int>(random.below(draws++, static_cast<std::uint64_t>(bound)));
    };
    const std::vector<int> all = depths(kDeepest);
    const int depth = all[below(static_cast<int>(all.size()))];
    const int width = 1 + below(4);
    ScheduleRequest request = request_of(kind(), depth, width, depth * width + below(3 * depth * width), 1 + below(3));
    request.first_window = below(5);
    request.first_minibatch = below(request.window);
    request.preload = 1 + below(2);
    request.chunks_per_device = 1 + below(3);
    request.capture_every_rounds = below(4);
    if (below(2) == 0) request.stop_after_rounds = 1 + below(4);
    ASSERT_EQ(flaw_of(request), "") << describe(request) << " seed=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, Invariants, ::testing::ValuesIn(all_schedule_kinds()), [](const auto& kind) {
  std::string name(to_string(kind.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(InterleavedInvariants, HoldForEveryNumberOfChunks) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (int chunks = 1; chunks <= 5; ++chunks) {
      for (int window = depth; window <= 3 * depth; ++window) {
        ScheduleRequest request = request_of(ScheduleKind::kInterleaved, depth, 1, window, 1);
        request.chunks_per_device = chunks;
        request.capture_every_rounds = 1;
        ASSERT_EQ(flaw_of(request), "") << describe(request);
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
