#include "launcher/rehearse/trace/trace_slice.h"

#include <gmock/gmock.h>

namespace everstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Strings = std::vector<std::string>;

constexpr std::int64_t kMinute = 60'000;

NodeTrace trace_of(const std::string& text) {
  auto trace = scheduler::parse_node_changes(text);
  EXPECT_TRUE(trace.ok());
  return trace ? *trace : NodeTrace{};
}

TEST(TraceSlice, BeginsWithThoseWhoAreThereOldestFirst) {
  const NodeTrace trace = trace_of("0,add,a\n0,add,b\n10,remove,a\n20,add,c\n30,add,a\n100,remove,b\n");
  const auto slice = slice_of(trace, 30, 60);
  ASSERT_TRUE(slice) << slice.error();
  EXPECT_EQ(slice->nodes, (Strings{"b", "c", "a"})) << "what changes at its first instant has happened";
  EXPECT_THAT(slice->instants, IsEmpty());
  EXPECT_EQ(slice->most_nodes(), 3);
}

TEST(TraceSlice, PutsWhatHappensAtOnceIntoOneInstant) {
  const NodeTrace trace = trace_of("0,add,a\n0,add,b\n10,remove,a\n10,remove,b\n10,add,c\n20,add,d\n90,remove,c\n");
  const auto slice = slice_of(trace, 0, 90);
  ASSERT_TRUE(slice) << slice.error();
  EXPECT_THAT(slice->instants, ElementsAre(NodeInstant{10, {"a", "b"}, {"c"}}, NodeInstant{20, {}, {"d"}}));
  EXPECT_EQ(slice->removed(), 2);
  EXPECT_EQ(slice->removals(), 1);
  EXPECT_EQ(slice->added(), 2);
}

TEST(TraceSlice, LeavesOutWhatAnInstantTakesBack) {
  const NodeTrace trace = trace_of("0,add,a\n10,add,b\n10,remove,b\n20,remove,a\n20,add,a\n90,remove,a\n");
  const auto slice = slice_of(trace, 0, 50);
  ASSERT_TRUE(slice) << slice.error();
  EXPECT_THAT(slice->instants, IsEmpty());
}

TEST(TraceSlice, CountsTimeFromTheFirstLine) {
  const NodeTrace trace = trace_of("1000,add,a\n1010,add,b\n1100,remove,a\n");
  const auto slice = slice_of(trace, 5, 50);
  ASSERT_TRUE(slice) << slice.error();
  EXPECT_THAT(slice->instants, ElementsAre(NodeInstant{5, {}, {"b"}}));
}

TEST(TraceSlice, RefusesTimeThatTheTraceDoesNotCover) {
  const NodeTrace trace = trace_of("0,add,a\n7200000,remove,a\n");
  const auto late = slice_of(trace, 5'400'000, 3'600'000);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("lasts 2 h and does not cover 1.5 h to 2.5 h"));
  EXPECT_FALSE(slice_of(trace, 0, 0));
}

TEST(TraceSlice, RefusesToBeginWithNobody) {
  const NodeTrace trace = trace_of("0,add,a\n10,remove,a\n50,add,b\n100,remove,b\n");
  const auto slice = slice_of(trace, 20, 50);
  ASSERT_FALSE(slice);
  EXPECT_THAT(slice.error().message, HasSubstr("no node at"));
}

TEST(TraceSlice, FindsTheBusiestAtAWholeMinute) {
  const NodeTrace trace = trace_of(
      "0,add,a\n0,add,b\n0,add,c\n"
      "300000,add,d\n"
      "610000,remove,a\n630000,add,e\n650000,add,a\n670000,add,f\n"
      "1210000,remove,a\n1230000,remove,b\n1250000,add,a\n1270000,add,b\n"
      "1810000,remove,a\n1830000,remove,b\n1850000,add,a\n1870000,add,b\n"
      "2400000,remove,a\n");
  const auto busiest = busiest_slice(trace, 2 * kMinute);
  ASSERT_TRUE(busiest) << busiest.error();
  EXPECT_EQ(busiest->from_ms, 20 * kMinute) << "of three with four changes the first of those that take two nodes";
  EXPECT_EQ(busiest->instants.size(), 4U);
}

TEST(NodeChanges, NameTheLineThatIsWrong) {
  const auto twice = scheduler::parse_node_changes("0,add,a\n# more\n5,add,a\n");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "line 3: node 'a' is already there");
  const auto unknown = scheduler::parse_node_changes("0,add,a\n5,stop,a\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "line 2: unknown action 'stop'");
  EXPECT_FALSE(scheduler::parse_node_changes(""));
  EXPECT_FALSE(scheduler::parse_node_changes("0,add,a\n")) << "no time passes";
}

TEST(NodeChanges, AreNotInATraceOfCounts) {
  const auto counts = scheduler::parse_node_changes("2021-12-11, 11:11:30, 55\n2021-12-11, 11:12:30, 54\n");
  ASSERT_FALSE(counts);
  EXPECT_THAT(counts.error().message, HasSubstr("does not say which of them come and go"));
}

}  // namespace
}  // namespace everstep::launcher
