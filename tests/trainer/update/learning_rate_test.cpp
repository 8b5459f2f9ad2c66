#include "trainer/update/learning_rate.h"

#include <limits>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(LearningRate, RisesFromZeroToItsPeak) {
  const LearningRate schedule{1.0, 0.1, Decay::kLinear, 10, 110};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
}

TEST(LearningRate, FallsToItsFloorAndStaysThere) {
  const LearningRate linear{1.0, 0.2, Decay::kLinear, 0, 100};
  EXPECT_DOUBLE_EQ(linear.at(25), 0.8);
  EXPECT_DOUBLE_EQ(linear.at(100), 0.2);
  EXPECT_DOUBLE_EQ(linear.at(1'000'000), 0.2);

  const LearningRate cosine{1.0, 0.2, Decay::kCosine, 0, 120};
  EXPECT_DOUBLE_EQ(cosine.at(0), 1.0);
  EXPECT_DOUBLE_EQ(cosine.at(40), 0.8);  // cos 60° is a half
  EXPECT_DOUBLE_EQ(cosine.at(60), 0.6);
  EXPECT_DOUBLE_EQ(cosine.at(120), 0.2);
  EXPECT_DOUBLE_EQ(cosine.at(121), 0.2);
}

TEST(LearningRate, StaysAtItsPeakWithoutDecay) {
  const LearningRate schedule{0.5, 0.1, Decay::kConstant, 10, 20};
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.5);
}

TEST(LearningRate, MayWarmUpUntilTheEnd) {
  const LearningRate schedule{1.0, 0.1, Decay::kCosine, 20, 20};
  EXPECT_TRUE(check(schedule).ok());
  EXPECT_DOUBLE_EQ(schedule.at(19), 0.95);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.1);
}

TEST(LearningRate, RefusesSchedulesThatCannotBe) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(check(LearningRate{}).ok());
  for (const double peak : {0.0, -1.0, kNan, kInfinity}) EXPECT_FALSE(check(LearningRate{.peak = peak}).ok());
  for (const double floor : {-1e-9, 1.0, kNan}) EXPECT_FALSE(check(LearningRate{.peak = 0.5, .floor = floor}).ok());
  EXPECT_FALSE(check(LearningRate{.total_samples = 0}).ok());
  EXPECT_FALSE(check(LearningRate{.warmup_samples = -1}).ok());
  EXPECT_EQ(check(LearningRate{.warmup_samples = 11, .total_samples = 10}).error().message,
            "a warm-up of 11 samples does not fit into 10");
}

}  // namespace
}  // namespace everstep::trainer
