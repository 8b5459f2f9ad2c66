#pragma once

#include <string>

#include "base/tick.h"
#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

struct SvgDrawing {
  std::string time_unit = "ticks";
  Tick ticks_per_unit = 1;
  std::string note{};       // stands under the title
  double width = 1200;      // in pixels; a long run may need more, so that the shortest op stays visible
  double max_width = 2800;  // beyond it the run is cut, and the picture says so
};

// The timeline as a picture (SVG) with one row per worker: forwards light and backwards dark, one hue per pipeline (per
// chunk where there is one pipeline only), what is left of split backwards light between dark edges, updates as dark
// bars, reduces and captures as small marks, a dashed line
// where a new version of the weights begins everywhere. With provisional steps, copies of sums are small marks too,
// trial steps thin bars, and what reads provisional weights is underlined. The number in a box counts the minibatches
// of the group inside its window. Each op has a tooltip.
std::string draw_svg(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing = {});

}  // namespace everstep::scheduler
