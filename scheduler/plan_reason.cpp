#include "scheduler/plan_reason.h"

#include <algorithm>

#include "base/text.h"
#include "scheduler/plan_ways.h"

namespace everstep::scheduler {
namespace {

std::string what_speaks_for(const Candidate& chosen, const Candidate& fastest) {
  if (chosen.moved_bytes < fastest.moved_bytes) return "moves less state";
  const bool with_clockwork = is_clockwork(chosen.kind) || is_clockwork(fastest.kind);
  const bool less_crowded = with_clockwork && is_crowded(fastest) && !is_crowded(chosen);
  return less_crowded ? "has fewer minibatches in flight" : "survives more losses";
}

}  // namespace

bool is_crowded(const Candidate& candidate) { return candidate.depth > 2 * candidate.pipelines; }

std::string reason_for(const Candidate& chosen, const std::vector<Candidate>& candidates) {
  const Candidate& fastest = candidates.front();
  const auto name = [](const Candidate& candidate) {
    return describe(candidate.kind, candidate.depth, candidate.pipelines, candidate.width);
  };
  const auto slower_than_fastest = [&](const Candidate& candidate) {
    const double ratio = static_cast<double>(candidate.window_time) / static_cast<double>(fastest.window_time);
    return fixed_text(100 * (ratio - 1), 1) + " % slower";
  };
  if (chosen.window_time > fastest.window_time) {
    return name(chosen) + " is " + slower_than_fastest(chosen) + " than " + name(fastest) +
           ", the fastest that fits, but " + what_speaks_for(chosen, fastest) + ".";
  }
  const auto next = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const Candidate& c) { return c.window_time > fastest.window_time; });
  const std::string reason = name(chosen) + " is the fastest that fits";
  if (next == candidates.end()) return reason + ".";
  return reason + "; next comes " + name(*next) + ", " + slower_than_fastest(*next) + ".";
}

std::string pipelines_hint(int depth, const PlanOptions& options) {
  std::vector<std::string> possible;
  for (const int pipelines : possible_pipelines(depth, options)) possible.push_back(std::to_string(pipelines));
  if (possible.empty()) return {};
  return "at depth " + std::to_string(depth) + " there can be " + either_of(possible);
}

Error no_shape(const PlanOptions& options, int workers, int blocks) {
  const std::string kind = options.kind ? std::string(to_string(*options.kind)) : "a schedule";
  const std::string crew = counted(workers, "worker", "workers");
  if (options.kind && options.depth) {
    const auto placement = Placement::make(*options.kind, *options.depth);
    if (!placement) return placement.error();
  }
  if (options.pipelines) {
    // Without a depth: what the deepest group has of this kind. It has the most to choose from in nearly every case.
    int depth = options.depth.value_or(std::min({workers / options.width.value_or(1), blocks, options.window}));
    while (!options.depth && depth > 1 && possible_pipelines(depth, options).empty()) --depth;
    const std::string hint = pipelines_hint(depth, options);
    // Without a hint no number of pipelines would help.
    if (!hint.empty()) {
      const std::string pipelines = counted(*options.pipelines, "pipeline", "pipelines");
      const std::string where = options.depth ? "depth " + std::to_string(depth) : crew;
      return invalid_argument("no plan has " + kind + " with " + pipelines + " for " + where, hint);
    }
  }
  return invalid_argument("no plan has " + kind + " for " + crew + ", " + counted(blocks, "block", "blocks") +
                              " and a window of " + std::to_string(options.window),
                          "leave kind, depth and width to the planner");
}

Error nothing_fits(const ModelProfile& profile, const Hardware& hardware, const std::vector<PlanShape>& shapes) {
  const auto smaller = [](const PlanShape& a, const PlanShape& b) { return a.largest_peak() < b.largest_peak(); };
  const PlanShape& least = *std::min_element(shapes.begin(), shapes.end(), smaller);
  const std::int64_t needed = least.largest_peak();
  std::string with;
  std::string hint = "use more workers, smaller minibatches or a smaller model";
  if (least.has_room_for_step) {
    with = " with provisional weights";
    std::int64_t without = needed;
    for (const PlanShape& shape : shapes) {
      without = std::min(without, with_provisional(profile, hardware, shape, 0).largest_peak());
    }
    if (without <= hardware.memory_bytes) {
      hint = "leave them to --provisional=auto or turn them off: without them " + gib_text(without) + " are enough";
    }
  }
  return invalid_argument("no plan" + with + " fits into " + gib_text(hardware.memory_bytes) +
                              " per worker: the smallest, " +
                              describe(least.kind, least.placement.depth(), least.placement.pipelines(), 1) +
                              ", needs " + gib_text(needed) + ", " + gib_text(needed - hardware.memory_bytes) + " more",
                          hint);
}

}  // namespace everstep::scheduler
