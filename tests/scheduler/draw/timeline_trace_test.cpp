#include "scheduler/draw/timeline_trace.h"

#include <map>

#include "storage/json/json.h"
#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using storage::Json;

Json events_of(const Drawn& drawn, double microseconds_per_tick) {
  const auto json = storage::parse_json(draw_trace(drawn.schedule, drawn.timeline, microseconds_per_tick));
  EXPECT_TRUE(json.ok()) << json.error();
  return *json->find("traceEvents");
}

const Json::Array& array_of(const Json& json) { return std::get<Json::Array>(json.value()); }

std::string text_of(const Json& event, std::string_view name) {
  return std::get<std::string>(event.find(name)->value());
}

std::int64_t number_of(const Json& event, std::string_view name) {
  return std::get<std::int64_t>(event.find(name)->value());
}

TEST(TimelineTrace, HoldsEveryOpAtItsTime) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 2, 17, 2);
  request.capture_every_rounds = 1;
  request.provisional = 1;
  const Drawn drawn = draw(request);
  const Json events = events_of(drawn, 1000);
  std::vector<std::size_t> next(drawn.schedule.workers.size(), 0);
  for (const Json& event : array_of(events)) {
    if (text_of(event, "ph") == "M") continue;
    const auto worker = static_cast<std::size_t>(number_of(event, "pid") * 4 + number_of(event, "tid"));
    const std::size_t i = next[worker]++;
    const Op& op = drawn.schedule.workers[worker][i];
    const OpSpan& span = drawn.timeline.spans[worker][i];
    const Json& args = *event.find("args");
    EXPECT_EQ(number_of(event, "ts"), 1000 * span.begin);
    EXPECT_EQ(number_of(args, "window"), op.window);
    EXPECT_EQ(text_of(event, "name").front(), to_string(op).front());
    const bool instant = !is_compute(op) && op.kind != OpKind::kUpdate;
    EXPECT_EQ(text_of(event, "ph"), instant ? "i" : "X");
    if (!instant) {
      EXPECT_EQ(number_of(event, "dur"), 1000 * (span.end - span.begin));
    }
    if (is_compute(op)) {
      EXPECT_EQ(number_of(args, "round"), op.round);
      EXPECT_EQ(number_of(args, "minibatch"), op.minibatch);
    }
    if (op.kind == OpKind::kUpdate || op.kind == OpKind::kTrialStep) {
      EXPECT_EQ(args.find("stage"), nullptr);
    } else {
      EXPECT_EQ(number_of(args, "stage"), op.stage);
    }
  }
  for (std::size_t worker = 0; worker < next.size(); ++worker) {
    EXPECT_EQ(next[worker], drawn.schedule.workers[worker].size());
  }
}

TEST(TimelineTrace, HoldsBothHalvesOfSplitBackwards) {
  const Drawn drawn = draw(request_of(ScheduleKind::kClockwork, 4, 1, 8, 1));
  std::map<std::string, int> counts;
  const Json events = events_of(drawn, 1);
  for (const Json& event : array_of(events)) {
    if (text_of(event, "ph") == "M") continue;
    ++counts[text_of(event, "cat")];
    if (text_of(event, "cat") != "weights") continue;
    EXPECT_EQ(text_of(event, "name").front(), 'W');
    EXPECT_EQ(number_of(event, "dur"), 1);
    EXPECT_NE(event.find("args")->find("minibatch"), nullptr);
  }
  EXPECT_EQ(counts["weights"], 8 * 4);
  EXPECT_EQ(counts["backward"], counts["weights"]);
}

TEST(TimelineTrace, NamesGroupsAndDevices) {
  const Json events = events_of(draw(request_of(ScheduleKind::kOneFOneB, 2, 2, 4, 1)), 1);
  std::vector<std::string> names;
  for (const Json& event : array_of(events)) {
    const Json* name = event.find("args")->find("name");
    if (text_of(event, "ph") == "M" && name != nullptr) names.push_back(std::get<std::string>(name->value()));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"group 0", "device 0", "device 1", "group 1", "device 0", "device 1"}));
}

TEST(TimelineTrace, WritesTimesOfHalfAMicrosecond) {
  const Drawn drawn = draw(request_of(ScheduleKind::kOneFOneB, 1, 1, 1, 1));
  const std::string text = draw_trace(drawn.schedule, drawn.timeline, 0.5);
  EXPECT_NE(text.find("\"ts\":0.5,\"dur\":1,"), std::string::npos) << text;
}

}  // namespace
}  // namespace everstep::scheduler
