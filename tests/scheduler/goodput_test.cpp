#include "scheduler/goodput.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/scheduler/trace_fixtures.h"

namespace everstep::scheduler {
namespace {

PlanRate linear(int workers) { return {static_cast<double>(workers), workers % 2 == 0 ? "even" : "odd"}; }

// 10 s with 4 workers, 10 s with 2, 20 s with 3.
MembershipTrace three_steps() { return {{{0, 4}, {10'000, 2}, {20'000, 3}}, 40'000, 0}; }

TEST(Goodput, IsTheIdealWhenChangesCostNothing) {
  const Goodput goodput = predict_goodput(three_steps(), {}, linear);
  EXPECT_DOUBLE_EQ(goodput.ideal_minibatches, 40 + 20 + 60);
  EXPECT_DOUBLE_EQ(goodput.actual_minibatches, 120);
  EXPECT_DOUBLE_EQ(goodput.fraction(), 1);
  EXPECT_EQ(goodput.changes, 2);
  EXPECT_EQ(goodput.stalled_seconds, 0);
}

TEST(Goodput, LosesTheRateOfTheNewWorkersForEachChangeButNotForTheStart) {
  const Goodput goodput = predict_goodput(three_steps(), {.cost_per_change_ms = 3000}, linear);
  EXPECT_DOUBLE_EQ(goodput.actual_minibatches, 40 + 2 * 7 + 3 * 17);
  EXPECT_DOUBLE_EQ(goodput.stalled_seconds, 6);
}

TEST(Goodput, StartsAStallAnewWhenAChangeMeetsIt) {
  const Goodput goodput = predict_goodput(three_steps(), {.cost_per_change_ms = 12'000}, linear);
  EXPECT_DOUBLE_EQ(goodput.actual_minibatches, 40 + 0 + 3 * 8);
  EXPECT_DOUBLE_EQ(goodput.stalled_seconds, 22);
}

TEST(Goodput, ChargesAChangeThatKeepsTheNumberOfWorkers) {
  const MembershipTrace swap{{{0, 2}, {10'000, 2}}, 20'000, 0};
  EXPECT_DOUBLE_EQ(predict_goodput(swap, {.cost_per_change_ms = 5000}, linear).fraction(), 0.75);
}

TEST(Goodput, CountsNothingAsLostWithTooFewWorkers) {
  const Goodput goodput = predict_goodput(three_steps(), {.cost_per_change_ms = 4000, .min_workers = 3}, linear);
  EXPECT_DOUBLE_EQ(goodput.ideal_minibatches, 40 + 60);
  EXPECT_DOUBLE_EQ(goodput.actual_minibatches, 40 + 3 * 16);
  EXPECT_DOUBLE_EQ(goodput.idle_seconds, 10);
  EXPECT_DOUBLE_EQ(goodput.stalled_seconds, 4);
  EXPECT_DOUBLE_EQ(predict_goodput(three_steps(), {.min_workers = 9}, linear).fraction(), 1);
}

TEST(Goodput, SharesTheTimeAmongThePlans) {
  const Goodput goodput = predict_goodput(three_steps(), {.cost_per_change_ms = 1000, .min_workers = 3}, linear);
  EXPECT_EQ(goodput.plans,
            (std::vector<PlanShare>{{"odd", 20, 0.5}, {"even", 10, 0.25}, {"too few workers", 10, 0.25}}));
}

TEST(Goodput, AsksForEachNumberOfWorkersOnce) {
  const MembershipTrace trace{{{0, 4}, {10, 2}, {20, 4}, {30, 2}}, 40, 0};
  std::vector<int> asked;
  predict_goodput(trace, {.cost_per_change_ms = 5, .samples = 7}, [&](int workers) {
    asked.push_back(workers);
    return linear(workers);
  });
  EXPECT_EQ(asked, (std::vector<int>{4, 2}));
}

TEST(Goodput, GivesASeriesOfMeansWithTheGoodputSoFar) {
  const Goodput goodput = predict_goodput(three_steps(), {.cost_per_change_ms = 5000, .samples = 4}, linear);
  ASSERT_EQ(goodput.series.size(), 4U);
  EXPECT_EQ(goodput.series[0], (GoodputSample{10, 4, 4, 4, 1}));
  EXPECT_EQ(goodput.series[1], (GoodputSample{20, 2, 2, 1, 50.0 / 60}));
  EXPECT_EQ(goodput.series[2], (GoodputSample{30, 3, 3, 1.5, 65.0 / 90}));
  EXPECT_EQ(goodput.series[3], (GoodputSample{40, 3, 3, 3, 95.0 / 120}));
}

TEST(Goodput, HasNoMoreSamplesThanMilliseconds) {
  const MembershipTrace tiny{{{0, 1}}, 3, 0};
  EXPECT_EQ(predict_goodput(tiny, {.samples = 10}, linear).series.size(), 3U);
}

// Looks at each millisecond by itself.
Goodput by_milliseconds(const MembershipTrace& trace, const GoodputOptions& options) {
  Goodput goodput;
  std::int64_t stalled_until = 0;
  std::size_t next = 0;
  int workers = 0;
  for (std::int64_t now = 0; now < trace.duration_ms; ++now) {
    if (next < trace.points.size() && trace.points[next].time_ms == now) {
      workers = trace.points[next].workers;
      if (next > 0) stalled_until = now + options.cost_per_change_ms;
      ++next;
    }
    const double rate = workers >= options.min_workers ? linear(workers).minibatches_per_second : 0;
    goodput.ideal_minibatches += rate / 1000;
    if (rate == 0) {
      goodput.idle_seconds += 0.001;
    } else if (now < stalled_until) {
      goodput.stalled_seconds += 0.001;
    } else {
      goodput.actual_minibatches += rate / 1000;
    }
  }
  return goodput;
}

TEST(Goodput, AgreesWithASimulationOfEachMillisecond) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomStream random(seed, 1);
    std::uint64_t index = 0;
    const auto below = [&](std::uint64_t bound) { return static_cast<int>(random.below(index++, bound)); };
    MembershipTrace trace;
    const int points = 1 + below(12);
    for (int i = 0; i < points; ++i) {
      trace.points.push_back({trace.duration_ms, below(6)});
      trace.duration_ms += 1 + below(400);
    }
    const GoodputOptions options{below(300), 1 + below(3), 1 + below(9)};
    const Goodput fast = predict_goodput(trace, options, linear);
    const Goodput slow = by_milliseconds(trace, options);
    ASSERT_NEAR(fast.ideal_minibatches, slow.ideal_minibatches, 1e-9) << "seed " << seed;
    ASSERT_NEAR(fast.actual_minibatches, slow.actual_minibatches, 1e-9) << "seed " << seed;
    ASSERT_NEAR(fast.stalled_seconds, slow.stalled_seconds, 1e-9) << "seed " << seed;
    ASSERT_NEAR(fast.idle_seconds, slow.idle_seconds, 1e-9) << "seed " << seed;
    ASSERT_NEAR(fast.series.back().goodput, fast.fraction(), 1e-12) << "seed " << seed;
  }
}

TEST(Goodput, OfTheP3TraceIsWhatIsKnownForTheseCosts) {
  const auto trace = parse_membership_trace(trace_fixture("bamboo/p3-trace.csv"));
  ASSERT_TRUE(trace.ok());
  const auto goodput = [&](std::int64_t cost_ms) {
    return predict_goodput(*trace, {.cost_per_change_ms = cost_ms}, linear).fraction();
  };
  EXPECT_NEAR(goodput(51'600), 0.80, 0.01);
  EXPECT_NEAR(goodput(5000), 0.98, 0.001);
  EXPECT_NEAR(goodput(2000), 0.992, 0.001);
}

}  // namespace
}  // namespace everstep::scheduler
