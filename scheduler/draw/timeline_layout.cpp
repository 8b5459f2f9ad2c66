#include "scheduler/draw/timeline_layout.h"

#include <algorithm>
#include <cmath>

namespace everstep::scheduler {
namespace {

constexpr double kLabels = 128;
constexpr double kRowPitch = 34;
constexpr double kGroupGap = 22;
constexpr double kNarrowest = 720;
constexpr double kShortestOp = 6;
constexpr double kReadableOp = 12.5;  // a number of two digits fits
constexpr double kLongestOp = 40;
constexpr double kAround = 2 * TimelineLayout::kMargin + kLabels;

Tick shortest_op(const Schedule& schedule, const Timeline& timeline) {
  Tick shortest = timeline.makespan;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < timeline.spans[worker].size(); ++i) {
      const OpSpan& span = timeline.spans[worker][i];
      if (is_compute(schedule.workers[worker][i]) && span.end > span.begin) {
        shortest = std::min(shortest, span.end - span.begin);
      }
    }
  }
  return std::max<Tick>(shortest, 1);
}

double scale(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing) {
  const auto shortest = static_cast<double>(shortest_op(schedule, timeline));
  const auto makespan = static_cast<double>(std::max<Tick>(timeline.makespan, 1));
  const double wanted = std::clamp((drawing.width - kAround) / makespan, kReadableOp / shortest, kLongestOp / shortest);
  return std::max(std::min(wanted, (drawing.max_width - kAround) / makespan), kShortestOp / shortest);
}

}  // namespace

TimelineLayout::TimelineLayout(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing)
    : schedule_(schedule), pixels_per_tick_(scale(schedule, timeline, drawing)) {
  // A run that was scaled to fit must not lose its last tick to rounding.
  const double fitting = (drawing.max_width - kAround) / pixels_per_tick_ + 1e-6;
  shown_ = std::min(timeline.makespan, static_cast<Tick>(fitting));
  width_ = std::ceil(std::max(kNarrowest, kAround + pixels_per_tick_ * static_cast<double>(shown_)));
}

double TimelineLayout::x_of(Tick tick) const {
  return kMargin + kLabels + pixels_per_tick_ * static_cast<double>(std::min(tick, shown_));
}

double TimelineLayout::y_of(int worker) const {
  const int headings = schedule_.request.width > 1 ? schedule_.group_of(worker) + 1 : 0;
  return kHeader + kRowPitch * worker + kGroupGap * headings;
}

double TimelineLayout::axis_y() const { return y_of(static_cast<int>(schedule_.workers.size()) - 1) + kRowPitch + 4; }

}  // namespace everstep::scheduler
