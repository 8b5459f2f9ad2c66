#include "scheduler/draw/timeline_svg.h"

#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/draw/xml_check.h"
#include "tests/scheduler/support.h"
#include "tests/times_in.h"

namespace everstep::scheduler {
namespace {

std::string picture_of(const ScheduleRequest& request, const SvgDrawing& drawing = {}) {
  const Drawn drawn = draw(request);
  return draw_svg(drawn.schedule, drawn.timeline, drawing);
}

struct DrawnBox {
  double x, y, width, height;
};

// Forwards and backwards: the boxes whose tooltip says so.
std::vector<DrawnBox> compute_boxes(const std::string& picture) {
  const std::vector<XmlElement> elements = read_xml(picture).elements;
  std::vector<DrawnBox> boxes;
  for (std::size_t i = 0; i + 1 < elements.size(); ++i) {
    const std::string& tooltip = elements[i + 1].text;
    const bool compute = tooltip.starts_with("forward of ") || tooltip.starts_with("backward of ");
    if (elements[i].name != "rect" || elements[i + 1].name != "title" || !compute) continue;
    const auto number = [&](const char* name) { return std::stod(elements[i].attributes.at(name)); };
    boxes.push_back({number("x"), number("y"), number("width"), number("height")});
  }
  return boxes;
}

double width_of(const std::string& picture) { return std::stod(picture.substr(picture.find("width=\"") + 7)); }

int compute_ops(const Schedule& schedule) {
  int ops = 0;
  for (const auto& list : schedule.workers) {
    for (const Op& op : list) ops += is_compute(op) ? 1 : 0;
  }
  return ops;
}

TEST(TimelineSvg, ShowsEveryOpOfEveryKindInWellFormedXml) {
  for (const int depth : {1, 2, 3, 4, 8, 16}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      for (const int width : {1, 2}) {
        ScheduleRequest request = request_of(kind, depth, width, depth * width + 1, 2);
        request.capture_every_rounds = 1;
        const Drawn drawn = draw(request);
        const std::string picture = draw_svg(drawn.schedule, drawn.timeline, {});
        ASSERT_EQ(xml_fault(picture), "") << describe(request);
        EXPECT_EQ(std::ssize(compute_boxes(picture)), compute_ops(drawn.schedule)) << describe(request);
        EXPECT_EQ(times_in(picture, "<title>update of window"), 2 * depth * width) << describe(request);
        EXPECT_EQ(times_in(picture, ">device "), depth * width);
      }
    }
  }
}

TEST(TimelineSvg, DrawsBoxesThatDoNotOverlapAndStayInside) {
  const std::string picture = picture_of(request_of(ScheduleKind::kAmdp, 8, 1, 20, 2));
  const std::vector<DrawnBox> boxes = compute_boxes(picture);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x, 0);
    EXPECT_LE(boxes[i].x + boxes[i].width, width_of(picture));
    if (i == 0 || boxes[i].y != boxes[i - 1].y) continue;
    EXPECT_GE(boxes[i].x, boxes[i - 1].x + boxes[i - 1].width);
  }
}

TEST(TimelineSvg, SaysWhatItShows) {
  const std::string picture = picture_of(request_of(ScheduleKind::kAmdp, 8, 1, 32, 2), {.note = "a <note>"});
  EXPECT_NE(picture.find("<title id=\"title\">amdp: D=8 × P=4 × W=1, window 32</title>"), std::string::npos);
  EXPECT_NE(picture.find("busy 93.7 %, bubble 6.3 % of 205 ticks · a &lt;note&gt;"), std::string::npos);
  EXPECT_NE(picture.find("<title>forward of minibatch 0, window 0, round 0, stage 0, pipeline 0, 0 to 1 ticks</title>"),
            std::string::npos);
  EXPECT_NE(picture.find("<title>reduce of stage 7 of window 0, "), std::string::npos);
  EXPECT_NE(picture.find(">stages 0 3 4 7</text>"), std::string::npos);
  EXPECT_NE(picture.find(">version 1</text>"), std::string::npos);
  EXPECT_NE(picture.find(">pipeline 3</text>"), std::string::npos);
  EXPECT_EQ(picture.find(">capture</text>"), std::string::npos);
  EXPECT_EQ(picture.find("cut after"), std::string::npos);
}

TEST(TimelineSvg, ShowsProvisionalSteps) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 4, 1, 12, 2);
  request.provisional = 1;
  const std::string picture = picture_of(request);
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_EQ(times_in(picture, "<title>trial step of window "), 2 * 4);
  EXPECT_EQ(times_in(picture, "<title>copy for the provisional step of stage "), 2 * 8);
  // Minibatches 0 and 1 of the second window, each on the two devices that run it before the update.
  EXPECT_EQ(times_in(picture, ", on provisional weights, "), 8);
  EXPECT_EQ(times_in(picture, ">on provisional weights</text>"), 1);
  EXPECT_EQ(times_in(picture_of(request_of(ScheduleKind::kClockwork, 4, 1, 12, 2)), "provisional"), 0);
}

TEST(TimelineSvg, CutsARunThatWouldBeTooWideAndSaysSo) {
  const std::string picture = picture_of(request_of(ScheduleKind::kAmdp, 8, 1, 800, 1));
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_LE(width_of(picture), 2800);
  EXPECT_NE(picture.find(" · cut after 437 ticks"), std::string::npos) << picture.substr(0, 700);
  for (const DrawnBox& box : compute_boxes(picture)) EXPECT_GE(box.width, 0.5);
}

TEST(TimelineSvg, MarksAVersionOnlyWhereAllWorkersUpdateTogether) {
  EXPECT_EQ(times_in(picture_of(request_of(ScheduleKind::kPipedream2bw, 4, 1, 8, 3)), ">version "), 0);
  EXPECT_EQ(times_in(picture_of(request_of(ScheduleKind::kAmdp, 4, 1, 8, 3)), ">version "), 3);
}

TEST(TimelineSvg, ColoursChunksWhereThereIsOnePipeline) {
  const std::string interleaved = picture_of(request_of(ScheduleKind::kInterleaved, 4, 1, 8, 1));
  EXPECT_NE(interleaved.find(">chunk 1</text>"), std::string::npos);
  const std::string deep = picture_of(request_of(ScheduleKind::kAmdp, 32, 1, 32, 1));
  EXPECT_NE(deep.find(">pipeline 7; then colours repeat</text>"), std::string::npos);
  EXPECT_NE(deep.find(">stages 0 3 4 7 … 31</text>"), std::string::npos);
}

TEST(TimelineSvg, ConvertsTicksToUnits) {
  const Drawn drawn = draw(request_of(ScheduleKind::kAmdp, 4, 1, 4, 1), 1'500'000, 3'000'000, 0);
  SvgDrawing drawing;
  drawing.time_unit = "ms";
  drawing.ticks_per_unit = 1'000'000;
  const std::string picture = draw_svg(drawn.schedule, drawn.timeline, drawing);
  EXPECT_NE(picture.find("pipeline 0, 0 to 1.5 ms</title>"), std::string::npos);
  EXPECT_NE(picture.find("time in ms</text>"), std::string::npos);
}

}  // namespace
}  // namespace everstep::scheduler
