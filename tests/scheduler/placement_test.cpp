#include "scheduler/placement.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "tests/scheduler/naive_shape.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kDeepestPlacement = 64;

// Calls `check` with every placement there is up to a depth.
void for_each_placement(auto check) {
  for (int depth = 1; depth <= kDeepestPlacement; ++depth) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      ScheduleRequest request = request_of(kind, depth, 1, depth, 1);
      const auto check_placement = [&] {
        const auto placement = placement_of(request);
        SCOPED_TRACE(describe(request));
        ASSERT_TRUE(placement) << placement.error();
        check(request, *placement);
      };
      for (int chunks = 1; chunks <= (kind == ScheduleKind::kInterleaved ? 4 : 1); ++chunks) {
        request.chunks_per_device = chunks;
        check_placement();
      }
      for (const int pipelines : is_clockwork(kind) ? clockwork_pipelines(depth) : std::vector<int>{}) {
        request.pipelines = pipelines;
        check_placement();
      }
    }
  }
}

std::vector<Placement> amdp_placements(int shallowest) {
  std::vector<Placement> placements;
  for (int depth = shallowest; depth <= kDeepestPlacement; depth += depth == 2 ? 2 : 4) {
    placements.push_back(Placement::make(ScheduleKind::kAmdp, depth).value());
  }
  return placements;
}

TEST(ScheduleKind, ComesBackEqualFromItsName) {
  std::set<std::string_view> names;
  for (const ScheduleKind kind : all_schedule_kinds()) {
    const auto again = parse_schedule_kind(to_string(kind));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, kind);
    names.insert(to_string(kind));
  }
  EXPECT_THAT(names, SizeIs(9));
}

TEST(ScheduleKind, IsRefusedByAnyOtherNameWithTheListOfNames) {
  for (const std::string name : {"", "AMDP", "amdp ", "1F1B", "pipedream"}) {
    const auto kind = parse_schedule_kind(name);
    ASSERT_FALSE(kind) << name;
    EXPECT_EQ(kind.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(kind.error().message, HasSubstr("'" + name + "'"));
    EXPECT_THAT(kind.error().hint,
                HasSubstr("amdp, amdp-sync, 1f1b, two-directions, gpipe, interleaved, pipedream-2bw, "
                          "clockwork, clockwork-sync"));
  }
}

TEST(ScheduleKind, IsAsynchronousIfThePipelineStaysFullAcrossUpdates) {
  for (const ScheduleKind kind : all_schedule_kinds()) {
    EXPECT_EQ(is_asynchronous(kind),
              kind == ScheduleKind::kAmdp || kind == ScheduleKind::kPipedream2bw || kind == ScheduleKind::kClockwork);
  }
}

TEST(Placement, ExistsForAmdpAtDepthTwoAndMultiplesOfFourOnly) {
  for (int depth = -4; depth <= kDeepestPlacement; ++depth) {
    const bool exists = depth == 2 || (depth > 0 && depth % 4 == 0);
    EXPECT_EQ(is_amdp_depth(depth), exists) << depth;
    EXPECT_EQ(Placement::make(ScheduleKind::kAmdp, depth).ok(), exists) << depth;
    EXPECT_EQ(Placement::make(ScheduleKind::kAmdpSync, depth).ok(), exists) << depth;
  }
}

TEST(Placement, ExistsForEveryOtherDepthUnderASynchronousKind) {
  for (int depth = 1; depth <= kDeepestPlacement; ++depth) {
    EXPECT_TRUE(Placement::make(ScheduleKind::kOneFOneB, depth));
    EXPECT_EQ(Placement::make(ScheduleKind::kTwoDirections, depth).ok(), depth % 2 == 0);
  }
}

TEST(Placement, ExistsForClockworkAtEveryDepthAndForPipelinesThatFit) {
  for (int depth = 1; depth <= kDeepestPlacement; ++depth) {
    EXPECT_EQ(Placement::make(ScheduleKind::kClockwork, depth)->pipelines(), depth % 2 == 0 ? depth / 2 : 1);
    for (int pipelines = 1; pipelines <= depth; ++pipelines) {
      const bool fits = pipelines == 1 || (depth % pipelines == 0 && depth / pipelines % 2 == 0);
      const auto placement = Placement::make(ScheduleKind::kClockworkSync, depth, 2, pipelines);
      EXPECT_EQ(placement.ok(), fits) << depth << " " << pipelines;
      EXPECT_TRUE(!placement || placement->round_size() == pipelines);
    }
  }
  EXPECT_EQ(Placement::make(ScheduleKind::kAmdp, 8)->round_size(), 8);
}

TEST(Placement, IsRefusedWithTheDepthTheKindAndAHint) {
  const Error six = Placement::make(ScheduleKind::kAmdp, 6).error();
  EXPECT_EQ(six.message, "depth 6 with schedule amdp: AMDP needs a depth of 2 or a multiple of 4");
  EXPECT_THAT(six.hint, HasSubstr("1f1b"));
  EXPECT_THAT(Placement::make(ScheduleKind::kTwoDirections, 5).error().message, HasSubstr("even depth"));
  EXPECT_THAT(Placement::make(ScheduleKind::kInterleaved, 4, 0).error().message, HasSubstr("at least one chunk"));
  EXPECT_THAT(Placement::make(ScheduleKind::kInterleaved, 4, -1).error().message, HasSubstr("at least one chunk"));
  for (const ScheduleKind kind : all_schedule_kinds()) {
    EXPECT_THAT(Placement::make(kind, 0).error().message, HasSubstr("depth 0"));
    EXPECT_THAT(Placement::make(kind, -4).error().message, HasSubstr("depth -4"));
  }
}

TEST(Placement, IgnoresChunksPerDeviceUnlessInterleaved) {
  for (const int chunks : {-1, 0, 1, 7}) {
    EXPECT_EQ(Placement::make(ScheduleKind::kOneFOneB, 4, chunks)->stages(), 4);
    EXPECT_EQ(Placement::make(ScheduleKind::kAmdp, 4, chunks)->stages(), 4);
  }
  EXPECT_EQ(Placement::make(ScheduleKind::kInterleaved, 4, 3)->stages(), 12);
}

// The two tables of the design, a row per device: the stages it holds for pipelines 0, 1, ….
TEST(Placement, EqualsTheDesignAtDepthsFourAndEight) {
  const int four[4][2] = {{0, 3}, {1, 2}, {2, 1}, {3, 0}};
  const int eight[8][4] = {{0, 3, 4, 7}, {1, 2, 5, 6}, {2, 1, 6, 5}, {3, 0, 7, 4},
                           {4, 7, 0, 3}, {5, 6, 1, 2}, {6, 5, 2, 1}, {7, 4, 3, 0}};
  const Placement at_four = Placement::make(ScheduleKind::kAmdp, 4).value();
  for (int device = 0; device < 4; ++device) {
    for (int pipeline = 0; pipeline < 2; ++pipeline) {
      EXPECT_EQ(at_four.device_of(pipeline, four[device][pipeline]), device);
    }
  }
  const Placement at_eight = Placement::make(ScheduleKind::kAmdp, 8).value();
  for (int device = 0; device < 8; ++device) {
    for (int pipeline = 0; pipeline < 4; ++pipeline) {
      EXPECT_EQ(at_eight.device_of(pipeline, eight[device][pipeline]), device);
    }
  }
}

TEST(Placement, EqualsAWalkAlongTheRing) {
  for_each_placement([](const ScheduleRequest& request, const Placement& placement) {
    ASSERT_EQ(placement.depth(), request.depth);
    ASSERT_EQ(placement.pipelines(), naive_pipelines(request));
    ASSERT_EQ(placement.stages(), naive_stages(request));
    for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
      for (int stage = 0; stage < placement.stages(); ++stage) {
        ASSERT_EQ(placement.device_of(pipeline, stage), naive_device_of(request, pipeline, stage));
      }
    }
  });
}

TEST(Placement, GivesEveryPipelineEveryDeviceOnce) {
  for_each_placement([](const ScheduleRequest&, const Placement& placement) {
    const int chunks = placement.stages() / placement.depth();
    for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
      std::vector<int> visits(placement.depth(), 0);
      for (int stage = 0; stage < placement.stages(); ++stage) ++visits[placement.device_of(pipeline, stage)];
      EXPECT_THAT(visits, Each(chunks));
    }
  });
}

TEST(Placement, KeepsConsecutiveStagesOnRingNeighbours) {
  for_each_placement([](const ScheduleRequest&, const Placement& placement) {
    const int depth = placement.depth();
    for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
      for (int stage = 1; stage < placement.stages(); ++stage) {
        const int step = placement.device_of(pipeline, stage) - placement.device_of(pipeline, stage - 1);
        const int around = (step + depth) % depth;
        EXPECT_TRUE(around == 1 % depth || around == depth - 1);
      }
    }
  });
}

TEST(Placement, ListsStagesAndReplicasThatAgreeWithDeviceOf) {
  for_each_placement([](const ScheduleRequest&, const Placement& placement) {
    const int chunks = placement.stages() * placement.pipelines() / placement.depth();
    std::vector<std::set<int>> stages(placement.depth());
    for (int stage = 0; stage < placement.stages(); ++stage) {
      std::set<int> replicas;
      for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
        replicas.insert(placement.device_of(pipeline, stage));
        stages[placement.device_of(pipeline, stage)].insert(stage);
      }
      EXPECT_THAT(replicas, SizeIs(placement.pipelines()));
      EXPECT_EQ(placement.replicas_of(stage), std::vector(replicas.begin(), replicas.end()));
      EXPECT_EQ(placement.owner_of(stage), placement.device_of(0, stage));
    }
    for (int device = 0; device < placement.depth(); ++device) {
      EXPECT_EQ(placement.stages_on(device), std::vector(stages[device].begin(), stages[device].end()));
      EXPECT_THAT(placement.stages_on(device), SizeIs(chunks));
    }
  });
}

TEST(Placement, SynchronisesInsideClosedMirrorGroups) {
  for_each_placement([](const ScheduleRequest& request, const Placement& placement) {
    std::set<int> numbers;
    for (int device = 0; device < placement.depth(); ++device) {
      numbers.insert(placement.mirror_group_of(device));
      for (int other = 0; other < placement.depth(); ++other) {
        const bool together = placement.mirror_group_of(device) == placement.mirror_group_of(other);
        EXPECT_EQ(together, naive_mirror_group_of(request, device) == naive_mirror_group_of(request, other));
        EXPECT_EQ(together, placement.stages_on(device) == placement.stages_on(other));
      }
    }
    EXPECT_EQ(*numbers.begin(), 0);
    EXPECT_EQ(*numbers.rbegin() + 1, static_cast<int>(numbers.size()));
  });
}

TEST(Placement, GivesAmdpTwoMirrorGroupsThatHoldTheStagesOfTheirOwnNumbers) {
  for (const Placement& placement : amdp_placements(4)) {
    for (int device = 0; device < placement.depth(); ++device) {
      const bool edge = device % 4 == 0 || device % 4 == 3;
      EXPECT_EQ(placement.is_edge(device), edge);
      std::vector<int> members;
      for (int other = 0; other < placement.depth(); ++other) {
        if (placement.mirror_group_of(other) == placement.mirror_group_of(device)) members.push_back(other);
      }
      EXPECT_EQ(placement.stages_on(device), members);
      EXPECT_EQ(placement.owner_of(device), device);
      EXPECT_THAT(members, SizeIs(placement.depth() / 2));
    }
  }
}

TEST(Placement, GivesEachEdgeDeviceOneFirstAndOneLastStageOfDifferentPipelines) {
  for (const Placement& placement : amdp_placements(4)) {
    for (int device = 0; device < placement.depth(); ++device) {
      std::vector<int> first_of, last_of;
      for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
        if (placement.device_of(pipeline, 0) == device) first_of.push_back(pipeline);
        if (placement.device_of(pipeline, placement.depth() - 1) == device) last_of.push_back(pipeline);
      }
      EXPECT_THAT(first_of, SizeIs(placement.is_edge(device) ? 1 : 0));
      EXPECT_THAT(last_of, SizeIs(placement.is_edge(device) ? 1 : 0));
      EXPECT_TRUE(!placement.is_edge(device) || first_of != last_of);
    }
  }
}

TEST(Placement, IsOnePipelineAtDepthTwo) {
  const Placement placement = Placement::make(ScheduleKind::kAmdp, 2).value();
  EXPECT_EQ(placement.pipelines(), 1);
  EXPECT_THAT(placement.stages_on(0), ElementsAre(0));
  EXPECT_THAT(placement.stages_on(1), ElementsAre(1));
  EXPECT_TRUE(placement.is_edge(0));
  EXPECT_FALSE(placement.is_edge(1));
}

TEST(Placement, CallsDevicesWithAStageZeroEdges) {
  for_each_placement([](const ScheduleRequest&, const Placement& placement) {
    for (int device = 0; device < placement.depth(); ++device) {
      EXPECT_EQ(placement.is_edge(device), placement.stages_on(device).front() == 0);
    }
  });
}

}  // namespace
}  // namespace everstep::scheduler
