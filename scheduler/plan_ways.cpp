#include "scheduler/plan_ways.h"

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/clockwork.h"

namespace everstep::scheduler {
namespace {

using Ways = std::vector<std::vector<PlanWay>>;

// As many pipelines as fit, as many as fit and leave no round that is not full, and one.
Ways clockwork_ways(ScheduleKind kind, int depth, const PlanOptions& options) {
  if (options.pipelines) {
    return is_clockwork_shape(depth, *options.pipelines) ? Ways{{{kind, *options.pipelines}}} : Ways{};
  }
  Ways ways(3);
  for (const int pipelines : clockwork_pipelines(depth)) {
    ways[0].push_back({kind, pipelines});
    if (options.window % pipelines == 0) ways[1].push_back({kind, pipelines});
  }
  ways[2].push_back({kind, 1});
  return ways;
}

Ways other_ways(int depth, const PlanOptions& options, bool has_stragglers) {
  if (options.kind) return {{{*options.kind}}};
  const ScheduleKind amdp = options.synchronous ? ScheduleKind::kAmdpSync : ScheduleKind::kAmdp;
  // In AMDP one slow device slows down its mirror group, half of all devices; in a single pipeline a short stage can
  // make up for it.
  const PlanWay one{ScheduleKind::kOneFOneB};
  if (is_amdp_depth(depth) && has_stragglers) return {{{amdp}}, {one}};
  if (is_amdp_depth(depth)) return {{{amdp}, one}};
  if (depth % 2 == 0) return {{{ScheduleKind::kTwoDirections}}, {one}};
  return {{one}};
}

int pipelines_of(const PlanWay& way, int depth) {
  const auto placement = Placement::make(way.kind, depth, 1, way.pipelines);
  return placement ? placement->pipelines() : 0;
}

}  // namespace

bool may_choose_clockwork(const PlanOptions& options) {
  return options.kind ? is_clockwork(*options.kind) : options.clockwork;
}

Ways ways_at(int depth, const PlanOptions& options, bool has_stragglers) {
  if (options.kind && is_clockwork(*options.kind)) return clockwork_ways(*options.kind, depth, options);
  Ways ways = other_ways(depth, options, has_stragglers);
  if (options.pipelines) {
    for (auto& preferred : ways) {
      std::erase_if(preferred, [&](const PlanWay& way) { return pipelines_of(way, depth) != *options.pipelines; });
    }
  }
  // At depth 1 no pipeline stays full across updates: there it would only be late ones.
  const ScheduleKind clockwork = options.synchronous ? ScheduleKind::kClockworkSync : ScheduleKind::kClockwork;
  if (may_choose_clockwork(options) && depth > 1)
    std::ranges::move(clockwork_ways(clockwork, depth, options), std::back_inserter(ways));
  return ways;
}

std::vector<int> possible_pipelines(int depth, const PlanOptions& options) {
  PlanOptions any = options;
  any.pipelines.reset();
  std::set<int> possible;
  for (const auto& preferred : ways_at(depth, any, true)) {
    for (const PlanWay& way : preferred) possible.insert(pipelines_of(way, depth));
  }
  possible.erase(0);
  return {possible.begin(), possible.end()};
}

std::vector<int> provisional_choices(const Candidate& candidate, const PlanOptions& options) {
  ScheduleRequest request = request_for(candidate.kind, candidate.depth, candidate.pipelines);
  request.width = candidate.width;
  request.window = options.window;
  request.lag = candidate.lag;
  const ProvisionalRange range = provisional_range(request);
  std::vector<int> choices;
  for (int more = 0; range.fewest + more <= range.most; more = std::max(1, 2 * more)) {
    request.provisional = range.fewest + more;
    const bool has_half = 2 * provisional_minibatches(request).value() >= options.window;
    if (has_half || options.provisional == ProvisionalWish::kOn) choices.push_back(request.provisional);
  }
  return choices;
}

}  // namespace everstep::scheduler
