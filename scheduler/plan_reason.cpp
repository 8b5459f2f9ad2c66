#include "scheduler/plan_reason.h"

#include <algorithm>

#include "base/text.h"

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

}  // namespace everstep::scheduler
