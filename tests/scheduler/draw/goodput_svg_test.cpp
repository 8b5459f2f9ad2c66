#include "scheduler/draw/goodput_svg.h"

#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/draw/xml_check.h"
#include "tests/times_in.h"

namespace everstep::scheduler {
namespace {

PlanRate linear(int workers) { return {static_cast<double>(workers), "linear"}; }

std::string picture_of(const MembershipTrace& trace, const std::vector<std::int64_t>& costs_ms) {
  std::vector<GoodputCurve> curves;
  for (const std::int64_t cost : costs_ms) {
    curves.push_back({std::to_string(cost) + " ms", predict_goodput(trace, {cost, 1, 50}, linear)});
  }
  return draw_svg(trace, curves, {"<trace> & \"costs\"", "note"});
}

TEST(GoodputSvg, DrawsOneCurvePerCostAndTheWorkers) {
  const MembershipTrace trace{{{0, 4}, {3'600'000, 2}, {7'200'000, 3}}, 14'400'000, 0};
  const std::string picture = picture_of(trace, {60'000, 5'000, 0});
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_EQ(times_in(picture, "<polyline"), 4);
  EXPECT_EQ(times_in(picture, "<polygon"), 1);
  EXPECT_NE(picture.find(">60000 ms: 0.9931</text>"), std::string::npos);
  EXPECT_NE(picture.find(">0 ms: 1</text>"), std::string::npos);
  EXPECT_NE(picture.find(">time in hours</text>"), std::string::npos);
  EXPECT_NE(picture.find("&lt;trace&gt; &amp; &quot;costs&quot;</title>"), std::string::npos);
}

TEST(GoodputSvg, DrawsTracesOfAnyLengthAndSize) {
  for (const std::int64_t duration_ms : {1, 1000, 60'000, 3'600'000, 90'000'000}) {
    for (const int workers : {0, 1, 100'000}) {
      EXPECT_EQ(xml_fault(picture_of({{{0, workers}}, duration_ms, 0}, {0})), "") << duration_ms << " " << workers;
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
