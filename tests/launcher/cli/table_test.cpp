#include "launcher/cli/table.h"

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

TEST(Table, BecomesSeveralWhereItDoesNotFit) {
  Table table{{{"worker"}, {"host"}, {"compute ms", Align::kRight}, {"state"}},
              {{"w0", "node-1", "1.5", "training"}, {"w1", "node-2", "12.5", "spare"}}};
  EXPECT_EQ(to_text(table, 37), to_text(table)) << "it is just as wide";
  EXPECT_EQ(to_text(table, 30),
            "worker  host    compute ms\n"
            "------  ------  ----------\n"
            "w0      node-1         1.5\n"
            "w1      node-2        12.5\n"
            "\n"
            "worker  state\n"
            "------  --------\n"
            "w0      training\n"
            "w1      spare\n");
  table.key_columns = 2;
  EXPECT_EQ(to_text(table, 10).find("worker  host    compute ms\n"), 0U) << "a column stays whole";
  EXPECT_NE(to_text(table, 10).find("\nworker  host    state\n"), std::string::npos);
}

TEST(Table, MayHaveNoRows) { EXPECT_EQ(to_text({{{"a"}, {"b"}}, {}}), "a  b\n-  -\n"); }

TEST(TableDeathTest, WantsOneCellPerColumn) { EXPECT_DEATH(to_text({{{"a"}, {"b"}}, {{"1"}}}), "one cell per column"); }

}  // namespace
}  // namespace everstep::launcher
