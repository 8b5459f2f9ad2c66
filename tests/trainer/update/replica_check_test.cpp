#include "trainer/update/replica_check.h"

#include <thread>

#include <gmock/gmock.h>

#include "tests/trainer/loop/counting_stage.h"
#include "trainer/loop/train_loop.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using testing::Each;
using testing::HasSubstr;

scheduler::Schedule shape_of(ScheduleKind kind, int depth, int width) {
  scheduler::ScheduleRequest request;
  request.kind = kind;
  request.depth = depth;
  request.width = width;
  request.window = 2 * depth * width;
  return scheduler::make_schedule(request).value();
}

// Records of workers whose replicas are all alike.
std::vector<UpdateRecord> agreeing(const scheduler::Schedule& shape) {
  std::vector<UpdateRecord> records(shape.workers.size());
  for (int worker = 0; worker < std::ssize(records); ++worker) {
    for (const int stage : shape.placement.stages_on(shape.device_of(worker))) {
      records[worker].weight_hashes.push_back(100 + stage);
    }
  }
  return records;
}

TEST(ReplicaCheck, FindsNothingWhereAllAgree) {
  for (const int width : {1, 2, 3}) {
    const scheduler::Schedule shape = shape_of(ScheduleKind::kAmdp, 4, width);
    EXPECT_EQ(find_wrong_replica(shape, agreeing(shape)), std::nullopt);
  }
}

TEST(ReplicaCheck, NamesTheOneThatDiffersFromMostOthers) {
  const scheduler::Schedule shape = shape_of(ScheduleKind::kAmdp, 4, 2);
  for (int worker = 0; worker < std::ssize(shape.workers); ++worker) {
    const std::vector<int> stages = shape.placement.stages_on(shape.device_of(worker));
    for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
      std::vector<UpdateRecord> records = agreeing(shape);
      records[worker].weight_hashes[chunk] ^= 1;
      EXPECT_EQ(find_wrong_replica(shape, records), (WrongReplica{worker, stages[chunk]}));
    }
  }
}

TEST(ReplicaCheck, BelievesTheOwnerWhereThereAreButTwo) {
  const scheduler::Schedule shape = shape_of(ScheduleKind::kAmdp, 4, 1);
  const int owner = shape.placement.owner_of(0);
  std::vector<UpdateRecord> records = agreeing(shape);
  const auto replicas = shape.placement.replicas_of(0);
  ASSERT_EQ(replicas.size(), 2U);
  const int other = replicas[0] == owner ? replicas[1] : replicas[0];
  for (const int flipped : {owner, other}) {
    std::vector<UpdateRecord> wrong = records;
    const std::vector<int> stages = shape.placement.stages_on(flipped);
    wrong[flipped].weight_hashes[std::find(stages.begin(), stages.end(), 0) - stages.begin()] ^= 1;
    EXPECT_EQ(find_wrong_replica(shape, wrong), (WrongReplica{other, 0}));
  }
}

constexpr int kCulprit = 2;
constexpr int kFlippedAfter = 3;  // updates

struct Verdicts {
  std::vector<Result<TrainResult>> results;
  std::vector<std::optional<WrongReplica>> named;
  std::vector<std::int64_t> steps;  // the last one that was made
  int stage = -1;                   // of the culprit, in which a bit flips
};

// AMDP on four workers; after the third update one bit changes in a replica that is not its stage's owner.
Verdicts run_with_flip(std::int64_t compare_every) {
  TrainOptions options = counting_options(ScheduleKind::kAmdp, 4, 1, 8, 8);
  options.compare_replicas_every = compare_every;
  auto transports = make_thread_transports(4, {std::chrono::microseconds(50), 3});
  Verdicts run;
  run.results.assign(4, Error{});
  run.named.resize(4);
  run.steps.resize(4);
  Sightings sightings;
  const auto data = make_no_data();
  const auto placement = scheduler::Placement::make(ScheduleKind::kAmdp, 4).value();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      Buffer victim;
      TrainHooks hooks;
      Tick clock = 0;
      hooks.now = [&clock] { return clock; };
      hooks.hash_weights = [](const Buffer& weights) { return byte_checksum(weights.as<const std::byte>()); };
      hooks.make_stage = [&, worker](const StageRequest& request) {
        int stage = 0;
        while (options.cuts[stage] != request.layout.first_block) ++stage;
        if (worker == kCulprit && placement.owner_of(stage) != kCulprit) {
          victim = request.memory.weights;
          run.stage = stage;
        }
        return make_counting_stage(request, stage, worker, sightings, clock);
      };
      hooks.on_step = [&, worker](const StepReport& report) {
        run.steps[worker] = report.step;
        if (report.step == kFlippedAfter && !victim.empty()) victim.data[0] ^= std::byte{1};
      };
      hooks.on_wrong_replica = [&, worker](const WrongReplica& wrong) { run.named[worker] = wrong; };
      run.results[worker] = train(options, *data, *transports[worker], hooks);
      transports[worker]->leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return run;
}

TEST(ReplicaCheck, StopsEverybodyBeforeWhatAFlippedBitDidIsApplied) {
  const Verdicts run = run_with_flip(1);
  ASSERT_GE(run.stage, 0);
  for (const auto& result : run.results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(result.error().message, HasSubstr("in the memory of worker 2"));
  }
  EXPECT_THAT(run.named, Each(WrongReplica{kCulprit, run.stage}));
  EXPECT_THAT(run.steps, Each(kFlippedAfter));
}

// The update covers the trace: what is compared less often than every window promises less.
TEST(ReplicaCheck, MissesWhatHappensBetweenTwoComparisons) {
  const Verdicts run = run_with_flip(kFlippedAfter);
  for (const auto& result : run.results) EXPECT_TRUE(result) << result.error();
  EXPECT_THAT(run.named, Each(std::nullopt));
}

}  // namespace
}  // namespace everstep::trainer
