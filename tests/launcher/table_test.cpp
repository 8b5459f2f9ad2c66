#include "launcher/table.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(Table, AlignsItsColumns) {
  const Table table{{{"schedule"}, {"busy", Align::kRight}, {"note"}},
                    {{"amdp", "0.960", "fastest"}, {"interleaved 1f1b", "0.9", ""}}};
  EXPECT_EQ(to_text(table),
            "schedule           busy  note\n"
            "----------------  -----  -------\n"
            "amdp              0.960  fastest\n"
            "interleaved 1f1b    0.9\n");
}

TEST(Table, CountsCharactersNotBytes) {
  const Table table{{{"time", Align::kRight}, {"x"}}, {{"7 µs", "→"}, {"12 µs", "b"}}};
  EXPECT_EQ(to_text(table), " time  x\n-----  -\n 7 µs  →\n12 µs  b\n");
}

TEST(Table, MayHaveNoRows) { EXPECT_EQ(to_text({{{"a"}, {"b"}}, {}}), "a  b\n-  -\n"); }

TEST(TableDeathTest, WantsOneCellPerColumn) { EXPECT_DEATH(to_text({{{"a"}, {"b"}}, {{"1"}}}), "one cell per column"); }

}  // namespace
}  // namespace everstep::launcher
