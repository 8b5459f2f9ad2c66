#pragma once

#include <string>
#include <vector>

#include "scheduler/goodput.h"
#include "scheduler/membership_trace.h"

namespace everstep::scheduler {

// One curve: the goodput predicted for the trace, with a series.
struct GoodputCurve {
  std::string label;
  Goodput goodput;
};

struct GoodputDrawing {
  std::string title;
  std::string note{};  // stands under the title
  double width = 1200;
};

// A picture (SVG) of predictions for one trace over time: above the goodput so far, one curve each, below the workers.
std::string draw_svg(const MembershipTrace& trace, const std::vector<GoodputCurve>& curves,
                     const GoodputDrawing& drawing);

}  // namespace everstep::scheduler
