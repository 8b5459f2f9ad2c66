#include "trainer/model/noted.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "trainer/update/anomaly.h"

namespace everstep::trainer {
namespace {

TEST(Noted, KnowsAtOnceWhatTheHostMade) {
  EXPECT_EQ(Noted<double>(-0.5).value(), -0.5);
  EXPECT_TRUE(Noted<bool>(true).value());
  EXPECT_EQ(Noted<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()).value(), ~std::uint64_t{0});
  EXPECT_TRUE(Noted<double>().is_known());
}

TEST(Noted, IsKnownWhenItsPageHasCome) {
  const auto page = std::make_shared<NotePage>();
  const Noted<double> loss(page, 0);
  const Noted<bool> flag(page, 1);
  EXPECT_FALSE(loss.is_known());
  page->bits = {std::bit_cast<std::uint64_t>(2.5), 1};
  EXPECT_EQ(loss.value(), 2.5);
  EXPECT_TRUE(flag.value());
}

TEST(Noted, FlagsAddUpKnownOrNot) {
  const auto page = std::make_shared<NotePage>();
  NotedFlags flags;
  flags.add(false);
  EXPECT_FALSE(flags.any());
  flags.add(Noted<bool>(page, 0));
  NotedFlags all;
  all.add(flags);
  page->bits = {1};
  EXPECT_TRUE(flags.any());
  EXPECT_TRUE(all.any());
}

TEST(NotedDeathTest, IsNotGuessed) {
  EXPECT_DEATH((void)Noted<double>(std::make_shared<NotePage>(), 0).value(), "still on the device");
}

// The same sources, whether numbers are known at once or after the window.
TEST(SourceWatch, JudgesWhatCameLateInTheOrderOfTheOps) {
  const double nan = std::nan("");
  const auto page = std::make_shared<NotePage>();
  const Noted<bool> bad_output(page, 0);
  SourceWatch watch;
  watch.forward({0, 1, {3}}, {false, bad_output}, 0.0);
  watch.forward({0, 2, {3}}, {bad_output, false}, nan);
  watch.backward({0, 1, {3}}, {false, true}, false);
  EXPECT_FALSE(watch.has_seen(0));
  page->bits = {1};
  EXPECT_TRUE(watch.has_seen(0));
  EXPECT_EQ(watch.take(0), Position{3});
  EXPECT_EQ(watch.take(0), std::nullopt);
}

}  // namespace
}  // namespace everstep::trainer
