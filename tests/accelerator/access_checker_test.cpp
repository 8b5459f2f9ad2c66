#include "tests/accelerator/access_checker.h"

#include <array>
#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep::accelerator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Clock knowing(std::initializer_list<Moment> moments) {
  Clock clock;
  for (const Moment& moment : moments) clock.learn(moment);
  return clock;
}

TEST(AccessChecker, TellsWhoDidWhat) {
  AccessChecker checker;
  EXPECT_THAT(checker.note({0, 100}, true, {0, 1}, {}, "fill"), IsEmpty());
  EXPECT_THAT(checker.note({50, 60}, false, {1, 1}, {}, "read"),
              ElementsAre("'read' on stream 1 reads what 'fill' on stream 0 writes, and nothing orders them"));
}

TEST(AccessChecker, IsContentWithWhatIsOrdered) {
  AccessChecker checker;
  checker.note({0, 100}, true, {0, 1}, {}, "fill");
  EXPECT_THAT(checker.note({0, 100}, false, {1, 1}, knowing({{0, 1}}), "read"), IsEmpty());
  EXPECT_THAT(checker.note({0, 100}, true, {2, 1}, knowing({{0, 1}, {1, 1}}), "fill"), IsEmpty());
}

TEST(AccessChecker, LetsReadersReadTogether) {
  AccessChecker checker;
  for (StreamId stream = 0; stream < 5; ++stream) {
    EXPECT_THAT(checker.note({0, 100}, false, {stream, 1}, {}, "read"), IsEmpty());
  }
  EXPECT_THAT(checker.note({99, 100}, true, {5, 1}, knowing({{1, 1}, {3, 1}}), "fill"), SizeIs(3));
}

TEST(AccessChecker, KeepsNeighboursApart) {
  AccessChecker checker;
  checker.note({10, 20}, true, {0, 1}, {}, "fill");
  EXPECT_THAT(checker.note({0, 10}, true, {1, 1}, {}, "left"), IsEmpty());
  EXPECT_THAT(checker.note({20, 30}, true, {2, 1}, {}, "right"), IsEmpty());
  EXPECT_THAT(checker.note({5, 25}, false, {3, 1}, {}, "all"), SizeIs(3));
}

TEST(AccessChecker, ForgetsWhatChangesHands) {
  AccessChecker checker;
  checker.note({0, 30}, true, {0, 1}, {}, "fill");
  checker.forget({10, 20});
  EXPECT_THAT(checker.note({10, 20}, true, {1, 1}, {}, "middle"), IsEmpty());
  EXPECT_THAT(checker.note({20, 21}, true, {1, 2}, {}, "right"), SizeIs(1));
}

// The same by comparing with every earlier access, byte by byte, as long as there is no race: from the first one on the
// two may remember different accesses, but both have found it.
TEST(AccessChecker, FindsTheFirstRaceThatANaiveOneFinds) {
  struct Past {
    std::uintptr_t begin, end;
    bool writes;
    Moment when;
  };
  const bool holds = rc::check("the first race is found, and no other", [] {
    AccessChecker checker;
    std::vector<Past> past;
    std::array<Clock, 4> clocks;
    for (std::uint64_t step = 1; step <= 40; ++step) {
      const auto stream = *rc::gen::inRange<StreamId>(0, 4);
      Clock& clock = clocks.at(static_cast<std::size_t>(stream));
      if (*rc::gen::inRange(0, 2) == 0) clock.learn(clocks.at(*rc::gen::inRange<std::size_t>(0, 4)));
      const auto begin = *rc::gen::inRange<std::uintptr_t>(0, 12);
      const Past now{begin,
                     begin + *rc::gen::inRange<std::uintptr_t>(1, 5),
                     *rc::gen::inRange(0, 3) == 0,
                     {stream, clock.of(stream) + 1}};
      bool races = false;
      for (const Past& each : past) {
        const bool meets = each.begin < now.end && now.begin < each.end && (each.writes || now.writes);
        races = races || (meets && !clock.knows(each.when));
      }
      clock.learn(now.when);
      past.push_back(now);
      RC_ASSERT(checker.note({now.begin, now.end}, now.writes, now.when, clock, "x").empty() == !races);
      if (races) return;
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace everstep::accelerator
