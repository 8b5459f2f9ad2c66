#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/recovery/random_chain.h"

namespace everstep::trainer {

using ChainDifference = std::string (*)(const HandoverChain&);

// Every change is checked where it happens: what is wrong once may cancel out later.
inline void run_checked(HandoverChain& chain, const TestGeneration& next, RunEnd expected = RunEnd::kHandOver,
                        ChainDifference difference = difference_from_reference) {
  const auto end = chain.run(next);
  ASSERT_TRUE(end) << end.error();
  ASSERT_EQ(*end, expected);
  ASSERT_EQ(difference(chain), "") << "at minibatch " << chain.position();
}

// 25 chains that nobody thought of, from this seed on: so many steps of plans of these kinds.
inline void run_random_chains(std::uint64_t first_seed, std::int64_t steps,
                              const std::vector<scheduler::ScheduleKind>& kinds,
                              ChainDifference difference = difference_from_reference) {
  constexpr int kWindow = 23;
  constexpr int kChains = 25;
  int inside_windows = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + kChains; ++seed) {
    SCOPED_TRACE(seed);
    HandoverChain chain(chain_options(kWindow, steps));
    RandomChain random(seed, kinds);
    for (bool goes_on = true; goes_on;) {
      const auto end = chain.run(random.next(chain));
      ASSERT_TRUE(end) << end.error();
      ASSERT_EQ(difference(chain), "") << "at minibatch " << chain.position();
      goes_on = *end == RunEnd::kHandOver;
      if (chain.is_inside_window()) ++inside_windows;
    }
    EXPECT_EQ(chain.position(), Position{kWindow * steps});
  }
  EXPECT_GT(inside_windows, kChains) << "most chains should have a stop inside a window";
}

}  // namespace everstep::trainer
