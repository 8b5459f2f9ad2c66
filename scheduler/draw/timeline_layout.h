#pragma once

#include "base/tick.h"
#include "scheduler/draw/timeline_svg.h"
#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// Where things stand in the picture of a timeline, in pixels. Long runs make the picture wider until numbers fit into
// the shortest ops; when it may not grow any more, ops become narrower; when they may not either, the run is cut.
class TimelineLayout {
 public:
  static constexpr double kMargin = 24;
  static constexpr double kHeader = 84;
  static constexpr double kRow = 28;

  // Keeps a reference to the schedule.
  TimelineLayout(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing);

  Tick shown() const { return shown_; }  // where the picture ends
  double width() const { return width_; }
  double pixels_per_tick() const { return pixels_per_tick_; }

  double x_of(Tick tick) const;   // ticks beyond the end are at the end
  double y_of(int worker) const;  // of the row's upper edge
  double axis_y() const;

 private:
  const Schedule& schedule_;
  double pixels_per_tick_;
  Tick shown_;
  double width_;
};

}  // namespace everstep::scheduler
