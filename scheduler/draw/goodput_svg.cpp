#include "scheduler/draw/goodput_svg.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "scheduler/draw/svg.h"

namespace everstep::scheduler {
namespace {

constexpr double kPageMargin = 24;
constexpr double kAxisLabels = 56;
constexpr double kPageHeader = 96;
constexpr double kPanel = 220;
constexpr double kWorkersPanel = 130;
constexpr double kGap = 46;
constexpr TextStyle kSmallText{12, kInk, Anchor::kStart, false};

struct TimeUnit {
  std::string_view name;
  double seconds;
};

// The largest unit of which the time has at least three.
TimeUnit unit_of(double seconds) {
  for (const TimeUnit& unit : {TimeUnit{"days", 86'400}, TimeUnit{"hours", 3600}, TimeUnit{"minutes", 60}}) {
    if (seconds >= 3 * unit.seconds) return unit;
  }
  return {"seconds", 1};
}

// A vertical scale from `low` at the bottom to `high` at the top.
struct Panel {
  double top = 0;
  double height = 0;
  double low = 0;
  double high = 1;

  double bottom() const { return top + height; }
  double y_of(double value) const { return bottom() - height * (value - low) / (high - low); }
};

class GoodputPicture {
 public:
  GoodputPicture(const MembershipTrace& trace, const std::vector<GoodputCurve>& curves, const GoodputDrawing& drawing)
      : trace_(trace),
        curves_(curves),
        drawing_(drawing),
        seconds_(static_cast<double>(trace.duration_ms) / 1000),
        goodput_{kPageHeader, kPanel, lowest_goodput(), 1},
        workers_{goodput_.bottom() + kGap, kWorkersPanel, 0, std::max(1.0, 1.1 * trace.max_workers())},
        legend_(legend_layout(legend_names(), drawing.width - 2 * kPageMargin, kSmallText)),
        picture_(drawing.width, workers_.bottom() + kTimeAxisHeight + legend_.back().y + kLegendLine + kPageMargin / 2,
                 drawing.title, drawing.note) {}

  std::string draw() && {
    picture_.text({kPageMargin, 34}, drawing_.title, {20, kInk, Anchor::kStart, true});
    picture_.text({kPageMargin, 56}, drawing_.note, {13, kMutedInk});
    const TimeUnit unit = unit_of(seconds_);
    const double pixels_per_unit = (x_of(seconds_) - x_of(0)) / seconds_ * unit.seconds;
    draw_time_axis(picture_, {x_of(0), x_of(seconds_), workers_.bottom(), goodput_.top, pixels_per_unit, unit.name});
    draw_scale(goodput_, "goodput so far, as a share of the ideal");
    draw_scale(workers_, "workers");
    draw_workers();
    for (std::size_t i = 0; i < curves_.size(); ++i) draw_curve(static_cast<int>(i));
    draw_legend();
    return std::move(picture_).take();
  }

 private:
  double x_of(double seconds) const {
    const double left = kPageMargin + kAxisLabels;
    return left + (drawing_.width - kPageMargin - left) * seconds / seconds_;
  }

  // The curves fill the panel, which ends at a round number.
  double lowest_goodput() const {
    double lowest = 0.98;
    for (const GoodputCurve& curve : curves_) {
      for (const GoodputSample& sample : curve.goodput.series) lowest = std::min(lowest, sample.goodput);
    }
    const double step = nice_step((1 - lowest) / 5);
    return std::max(0.0, 1 - step * std::ceil((1 - lowest) / step - 1e-9));
  }

  void draw_scale(const Panel& panel, std::string_view name) {
    const double step = nice_step((panel.high - panel.low) / 5);
    picture_.text({kPageMargin, panel.top - 12}, name, {12, kInk, Anchor::kStart, true});
    for (int i = 0; panel.low + i * step <= panel.high + 1e-9; ++i) {
      const double value = panel.low + i * step;
      const double y = panel.y_of(value);
      picture_.line({x_of(0), y}, {x_of(seconds_), y}, {kRule});
      picture_.text({x_of(0) - 8, y + 4}, number_text(value, 3), {11, kMutedInk, Anchor::kEnd});
    }
  }

  void draw_workers() {
    std::vector<Point> outline;
    for (std::size_t i = 0; i < trace_.points.size(); ++i) {
      const bool last = i + 1 == trace_.points.size();
      const std::int64_t end_ms = last ? trace_.duration_ms : trace_.points[i + 1].time_ms;
      const double y = workers_.y_of(trace_.points[i].workers);
      outline.push_back({x_of(static_cast<double>(trace_.points[i].time_ms) / 1000), y});
      outline.push_back({x_of(static_cast<double>(end_ms) / 1000), y});
    }
    std::vector<Point> area = outline;
    area.push_back({x_of(seconds_), workers_.bottom()});
    area.push_back({x_of(0), workers_.bottom()});
    picture_.polygon(area, kWorkersHue.tint);
    picture_.polyline(outline, {kWorkersHue.tone, 1.5});
  }

  // Curves take the tones from the second on: the first is the workers'.
  static std::string_view tone_of(int curve) { return hue(curve + 1).tone; }

  void draw_curve(int index) {
    std::vector<Point> points{{x_of(0), goodput_.y_of(1)}};
    for (const GoodputSample& sample : curves_[index].goodput.series) {
      points.push_back({x_of(sample.end_seconds), goodput_.y_of(sample.goodput)});
    }
    picture_.polyline(points, {tone_of(index), 2.5});
  }

  std::vector<std::string> legend_names() const {
    std::vector<std::string> names;
    for (const GoodputCurve& curve : curves_) {
      names.push_back(curve.label + ": " + number_text(curve.goodput.fraction(), 4));
    }
    names.emplace_back("workers");
    return names;
  }

  void draw_legend() {
    const std::vector<std::string> names = legend_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Point corner{kPageMargin + legend_[i].x, workers_.bottom() + kTimeAxisHeight + legend_[i].y};
      if (i < curves_.size()) {
        picture_.line({corner.x, corner.y + 7}, {corner.x + kLegendSample, corner.y + 7},
                      {tone_of(static_cast<int>(i)), 2.5});
      } else {
        picture_.box({corner.x, corner.y, kLegendSample, 14}, kWorkersHue.tint);
      }
      picture_.text({corner.x + kLegendSample + 6, corner.y + 11}, names[i], kSmallText);
    }
  }

  static constexpr Hue kWorkersHue = kHues[0];

  const MembershipTrace& trace_;
  const std::vector<GoodputCurve>& curves_;
  const GoodputDrawing& drawing_;
  double seconds_;
  Panel goodput_;
  Panel workers_;
  std::vector<Point> legend_;
  SvgPicture picture_;
};

}  // namespace

std::string draw_svg(const MembershipTrace& trace, const std::vector<GoodputCurve>& curves,
                     const GoodputDrawing& drawing) {
  return GoodputPicture(trace, curves, drawing).draw();
}

}  // namespace everstep::scheduler
