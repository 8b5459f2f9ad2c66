#include "trainer/emulated/emulated_stage.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "trainer/emulated/slowed_stage.h"

namespace everstep::trainer {
namespace {

using std::chrono::milliseconds;

constexpr EmulatedTimes kTimes{milliseconds(10), milliseconds(20), milliseconds(5)};

StageRequest stage_of(int first_block, int end_block) {
  StageRequest request;
  request.model.shape = {"toy", scheduler::ModelFamily::kGpt, 2, 8, 2, 16, 32};
  request.model.minibatch = 3;
  request.layout.first_block = first_block;
  request.layout.end_block = end_block;
  return request;
}

template <typename Action>
std::chrono::duration<double, std::milli> time_of(Action action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::steady_clock::now() - begin;
}

TEST(SlowedStage, TakesSoManyTimesAsLongAndComputesTheSame) {
  const auto stage = make_slowed_stage(make_emulated_stage(stage_of(0, 4), kTimes), 3);
  EXPECT_GE(time_of([&] { EXPECT_EQ(stage->forward({0}, {})->loss.value(), 0); }), milliseconds(30));
  EXPECT_GE(time_of([&] { EXPECT_EQ(stage->backward_input({0}, {}, 0)->size, 0U); }), milliseconds(60));
  EXPECT_GE(time_of([&] { EXPECT_TRUE(stage->backward_weights({0}, 0)); }), milliseconds(15));
}

TEST(EmulatedStage, WaitsAsLongAsItWasTold) {
  const auto stage = make_emulated_stage(stage_of(0, 4), kTimes);
  EXPECT_GE(time_of([&] { EXPECT_TRUE(stage->forward({0}, {}).ok()); }), milliseconds(10));
  EXPECT_GE(time_of([&] { EXPECT_TRUE(stage->backward_input({0}, {}, 0).ok()); }), milliseconds(20));
  EXPECT_GE(time_of([&] { EXPECT_TRUE(stage->backward_weights({0}, 0)); }), milliseconds(5));
}

TEST(EmulatedStage, HandsOnTensorsOfTheRightSize) {
  const StageRequest request = stage_of(1, 3);
  const auto stage = make_emulated_stage(request, {});
  const Buffer output = stage->forward({0}, {})->tensor;
  const Buffer gradient = *stage->backward_input({0}, {}, 0);
  EXPECT_EQ(output.size, request.model.boundary_bytes());
  EXPECT_EQ(gradient.size, request.model.boundary_bytes());
  const auto bytes = output.as<unsigned char>();
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0; }));
}

TEST(EmulatedStage, HasNoNeighboursBeyondTheEnds) {
  EXPECT_TRUE(make_emulated_stage(stage_of(0, 2), {})->backward_input({0}, {}, 0)->empty());
  EXPECT_FALSE(make_emulated_stage(stage_of(0, 2), {})->forward({0}, {})->tensor.empty());
  EXPECT_TRUE(make_emulated_stage(stage_of(2, 4), {})->forward({0}, {})->tensor.empty());
  EXPECT_FALSE(make_emulated_stage(stage_of(2, 4), {})->backward_input({0}, {}, 0)->empty());
}

}  // namespace
}  // namespace everstep::trainer
