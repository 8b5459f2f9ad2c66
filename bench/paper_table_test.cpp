#include "bench/paper_table.h"

#include <gtest/gtest.h>

namespace everstep::bench {
namespace {

TEST(PaperTable, PutsAmdpBeforePipedream2bwBeforeInterleavedAsThePaperDoes) {
  for (const PaperRow& row : paper_table()) {
    EXPECT_GT(row.amdp, 1.0) << row.model << " T=" << row.rounds_per_update;
    EXPECT_LT(row.interleaved, 1.0) << row.model << " T=" << row.rounds_per_update;
  }
}

TEST(PaperTable, IsWithinAFewPercentOfThePublishedGptRatios) {
  for (const PaperRow& row : paper_table()) {
    if (row.model != "gpt-1.56b") continue;
    EXPECT_NEAR(row.amdp / row.published_amdp, 1.0, 0.06) << row.rounds_per_update;
    EXPECT_NEAR(row.interleaved / row.published_interleaved, 1.0, 0.03) << row.rounds_per_update;
  }
}

TEST(PaperTable, GainsMoreFromFewerUpdatesBecauseOnlyAmdpPaysForThem) {
  const auto rows = paper_table();
  EXPECT_GT(rows[1].amdp, rows[0].amdp);
  EXPECT_GT(paper_table(0)[0].amdp, rows[0].amdp);
}

}  // namespace
}  // namespace everstep::bench
