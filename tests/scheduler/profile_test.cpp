#include "scheduler/profile.h"

#include <gtest/gtest.h>

#include "scheduler/model_shape.h"
#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

TEST(ModelShape, KnowsThePublishedModelsByName) {
  for (const char* name :
       {"gpt2-small", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt-1.56b", "bert-base", "bert-1.04b"}) {
    ASSERT_TRUE(find_model(name).ok()) << name;
    EXPECT_TRUE(check(estimate_profile(*find_model(name))).ok()) << name;
  }
  EXPECT_EQ(find_model("gpt5").error().code, ErrorCode::kNotFound);
  EXPECT_NE(find_model("gpt5").error().hint.find("gpt2-small"), std::string::npos);
}

std::int64_t trained_parameters(const char* name) {
  const ModelShape shape = *find_model(name);
  const ModelProfile profile = estimate_profile(shape);
  std::int64_t sum = 0;
  for (const BlockProfile& block : profile.blocks) sum += block.parameters;
  // Published counts have the tied embedding once.
  return sum - std::int64_t{shape.vocabulary} * shape.hidden;
}

TEST(ModelShape, HasThePublishedNumbersOfParameters) {
  EXPECT_NEAR(static_cast<double>(trained_parameters("gpt2-small")), 124.4e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(trained_parameters("gpt2-xl")), 1557.6e6, 1e6);
  EXPECT_NEAR(static_cast<double>(trained_parameters("bert-base")), 109.5e6, 1e6);
  EXPECT_NEAR(static_cast<double>(trained_parameters("bert-1.04b")), 1.04e9, 0.02e9);
}

TEST(ModelShape, CostsTheHeadOfThePapersGptAboutTwoAndAThirdBlocks) {
  const ModelProfile profile = estimate_profile(*find_model("gpt-1.56b"));
  const double ratio =
      static_cast<double>(profile.blocks.back().forward) / static_cast<double>(profile.blocks[1].forward);
  EXPECT_NEAR(ratio, 2.365, 0.001);
}

TEST(Profile, IsRefusedWithTheBlockAndTheFieldNamed) {
  ModelProfile profile = even_profile(3);
  EXPECT_TRUE(check(profile).ok());
  profile.blocks[2].backward = 0;
  EXPECT_NE(check(profile).error().message.find("block 2"), std::string::npos);
  EXPECT_NE(check(profile).error().message.find("backward"), std::string::npos);
  profile = even_profile(3);
  for (BlockProfile& block : profile.blocks) block.parameters = std::int64_t{1} << 41;
  EXPECT_NE(check(profile).error().message.find("parameters of all blocks"), std::string::npos);
  profile.blocks.clear();
  EXPECT_NE(check(profile).error().message.find("number of blocks"), std::string::npos);
}

TEST(TimingModel, AddsUpTheBlocksOfAStage) {
  const ModelProfile profile = random_profile(6, 5);
  const auto placement = Placement::make(ScheduleKind::kOneFOneB, 2);
  const TimingModel model = timing_model(profile, {}, *placement, 1, {0, 4, 6});
  Tick forward = 0;
  std::int64_t parameters = 0;
  for (int block = 0; block < 4; ++block) {
    forward += profile.blocks[block].forward;
    parameters += profile.blocks[block].parameters;
  }
  EXPECT_EQ(model.stages[0].forward, forward);
  EXPECT_EQ(model.stages[0].weight_bytes, 2 * parameters);
  EXPECT_EQ(model.stages[0].optimizer_bytes, 12 * parameters);
  EXPECT_EQ(model.stages[0].transfer, 80'000) << "a megabyte at 12.5 GB/s";
  EXPECT_EQ(model.stages[0].reduce, 0) << "there is one replica";
}

TEST(TimingModel, ChargesReducesOnlyWhereThereAreReplicas) {
  const ModelProfile profile = even_profile(4, 1'000'000, 3'125'000);  // 12.5 MB of gradients: 1 ms
  const auto one = Placement::make(ScheduleKind::kOneFOneB, 4);
  const auto two = Placement::make(ScheduleKind::kAmdp, 4);
  const Cuts cuts{0, 1, 2, 3, 4};
  EXPECT_EQ(timing_model(profile, {}, *one, 1, cuts).stages[0].reduce, 0);
  EXPECT_EQ(timing_model(profile, {}, *two, 1, cuts).stages[0].reduce, 1'000'000);
  EXPECT_EQ(timing_model(profile, {}, *one, 2, cuts).stages[0].reduce, 1'000'000);
  EXPECT_EQ(timing_model(profile, {}, *two, 4, cuts).stages[0].reduce, 2'500'000);
  EXPECT_GT(timing_model(profile, {}, *two, 1, cuts).update, timing_model(profile, {}, *one, 1, cuts).update);
}

}  // namespace
}  // namespace everstep::scheduler
