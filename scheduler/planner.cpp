#include "scheduler/planner.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "scheduler/clockwork.h"
#include "scheduler/estimate.h"
#include "scheduler/guards.h"
#include "scheduler/plan_input.h"
#include "scheduler/plan_reason.h"
#include "scheduler/plan_ways.h"
#include "scheduler/stragglers.h"

namespace everstep::scheduler {
namespace {

// Deeper pipelines are planned only when asked for: each further stage costs planning time and gains less and less.
constexpr int kDeepestTried = 128;

// What a later update must gain to be worth the minibatches that it makes start on old weights.
constexpr double kWorthALag = 1.01;

// Less than none where not even owners keep their second version.
int guard_copies(const Plan& plan) {
  int copies = plan.guards.empty() ? -1 : 0;
  for (const std::vector<WorkerId>& guards : plan.guards) copies += static_cast<int>(guards.size());
  return copies;
}

class Planner {
 public:
  Planner(const ModelProfile& profile, const std::vector<WorkerInfo>& workers, const PlanOptions& options)
      : profile_(profile),
        workers_(workers),
        options_(options),
        count_(static_cast<int>(workers.size())),
        deepest_(std::min({count_, static_cast<int>(profile.blocks.size()), options.window, kDeepestTried})),
        has_stragglers_(std::ranges::any_of(workers, [](const WorkerInfo& worker) { return worker.slowness != 1; })) {}

  // Whatever else is asked for; what it survives is reckoned as if other depths were free to be chosen.
  void keep_to(const Plan& shape, int fewest) {
    options_.depth = shape.depth;
    options_.width = shape.width;
    fewest_ = fewest;
  }

  Result<PlanReport> run() {
    collect_shapes();
    if (shapes_.empty()) return no_shape(options_, count_, static_cast<int>(profile_.blocks.size()));
    time_candidates();
    if (timed_.empty()) return nothing_fits(profile_, options_.hardware, shapes_);
    return choose();
  }

  // Fewer workers than this fit no plan that keeps the wishes for kind, depth and pipelines.
  int fewest_workers() const {
    if (fewest_) return *fewest_;
    int fewest = std::numeric_limits<int>::max();
    for (const PlanShape& shape : shapes_) {
      if (fits(shape)) fewest = std::min(fewest, shape.placement.depth());
    }
    return fewest;
  }

 private:
  struct Timed {
    const PlanShape* shape;
    Candidate candidate;
  };

  int widest(int depth) const { return options_.width.value_or(std::min(count_, options_.window) / depth); }

  // With room for a provisional step if no plan may be without it.
  PlanShape made_shape(ScheduleKind kind, const Placement& placement, const Slowness& slowness = {}) const {
    Candidate narrowest;
    narrowest.kind = kind;
    narrowest.depth = placement.depth();
    narrowest.pipelines = placement.pipelines();
    narrowest.width = options_.width.value_or(1);
    const bool must_have_step =
        options_.provisional == ProvisionalWish::kOn && !provisional_choices(narrowest, options_).empty();
    return make_shape(profile_, options_.hardware, kind, placement, slowness, must_have_step);
  }

  // Made unless there is one like it.
  const PlanShape& shape_of(ScheduleKind kind, const Placement& placement) {
    for (const PlanShape& shape : shapes_) {
      if (shape.kind == kind && shape.placement.depth() == placement.depth() &&
          shape.placement.pipelines() == placement.pipelines()) {
        return shape;
      }
    }
    shapes_.push_back(made_shape(kind, placement));
    return shapes_.back();
  }

  bool fits(const PlanShape& shape) const { return shape.largest_peak() <= options_.hardware.memory_bytes; }

  void collect_shapes() {
    const int from = options_.depth.value_or(1);
    const int to = options_.depth.value_or(deepest_);
    for (int depth = from; depth <= to; ++depth) {
      if (widest(depth) < 1 || depth * widest(depth) > std::min(count_, options_.window)) continue;
      for (const std::vector<PlanWay>& preferred : ways_at(depth, options_, has_stragglers_)) {
        for (const PlanWay& way : preferred) {
          const auto placement = Placement::make(way.kind, depth, 1, way.pipelines);
          if (!placement || placement->stages() > std::ssize(profile_.blocks)) continue;
          if (fits(shape_of(way.kind, *placement))) break;
        }
      }
    }
  }

  // Many widths give the busiest group the same share of a window, and so the same time. Of those the widest keeps the
  // most copies, the narrowest moves the least to newcomers, and the width that runs now moves nothing.
  std::vector<int> widths_worth_timing(const Placement& placement) const {
    const int narrowest = options_.width.value_or(1);
    const auto share = [&](int width) { return largest_share(options_.window, placement.round_size(), width); };
    std::vector<int> widths;
    for (int width = widest(placement.depth()); width >= narrowest; --width) {
      const bool widest_of_share = widths.empty() || share(width) != share(widths.back());
      const bool narrowest_of_share = width == narrowest || share(width - 1) != share(width);
      const bool runs_now = previous() != nullptr && previous()->width == width;
      if (widest_of_share || narrowest_of_share || runs_now) widths.push_back(width);
    }
    return widths;
  }

  // The shape as it is with the fastest of the workers: cut anew around those of them that are slow.
  std::vector<const PlanShape*> seated_shapes(const PlanShape& shape, int width) {
    std::vector<const PlanShape*> seated;
    for (const Slowness& slowness : seatings(profile_, shape.placement, width, workers_, previous())) {
      if (slowness.empty()) return {&shape};
      varied_.push_back(made_shape(shape.kind, shape.placement, slowness));
      if (!fits(varied_.back())) {
        varied_.back() = shape;
        varied_.back().slowness = slowness;
      }
      seated.push_back(&varied_.back());
    }
    return seated;
  }

  static void sort_fastest_first(std::vector<Timed>& all) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Timed& a, const Timed& b) { return a.candidate.window_time < b.candidate.window_time; });
  }

  void time_candidates() {
    std::vector<Timed> open;
    for (const PlanShape& shape : shapes_) {
      if (!fits(shape)) continue;
      for (const int width : widths_worth_timing(shape.placement)) {
        for (const PlanShape* seated : seated_shapes(shape, width)) {
          open.push_back({seated, candidate_of(*seated, width)});
          open.back().candidate.window_time =
              window_time_bound(profile_, options_.hardware, *seated, options_.window, width);
        }
      }
    }
    sort_fastest_first(open);
    Tick limit = std::numeric_limits<Tick>::max();
    for (Timed& timed : open) {
      if (timed.candidate.window_time > limit) break;
      timed_.push_back(timed_with_lag(timed));
      limit = std::min(limit, tolerated(timed_.back().candidate.window_time));
    }
    sort_fastest_first(timed_);
  }

  void time(Timed& timed) const {
    const SteadyState steady = window_time(profile_, options_.hardware, *timed.shape, options_.window,
                                           timed.candidate.width, options_.preload);
    timed.candidate.window_time = steady.window;
    timed.candidate.busy = steady.busy();
    timed.candidate.lag = timed.shape->lag;
    timed.candidate.peak_bytes = timed.shape->largest_peak();
  }

  // The same with an update that stands later, if it fits.
  std::optional<Timed> timed_at_lag(const Timed& timed, int lag) {
    if (lag < 1) return std::nullopt;
    PlanShape shape = with_lag(profile_, options_.hardware, *timed.shape, lag);
    if (!fits(shape)) return std::nullopt;
    Candidate late = timed.candidate;
    late.lag = lag;
    const bool loses_step = shape.has_room_for_step && provisional_choices(late, options_).empty();
    if (loses_step && !provisional_choices(timed.candidate, options_).empty()) return std::nullopt;
    varied_.push_back(std::move(shape));
    Timed other{&varied_.back(), timed.candidate};
    time(other);
    return other;
  }

  // Times it as it stands, and with later updates as long as they may gain something: its time so far is a bound.
  Timed timed_with_lag(Timed timed) {
    const auto bound = static_cast<double>(timed.candidate.window_time);
    time(timed);
    if (timed.shape->kind != ScheduleKind::kClockwork) return timed;
    const Placement& placement = timed.shape->placement;
    const Clock clock(placement.depth(), placement.pipelines());
    const int later = std::min(placement.depth(), clock.largest_lag(options_.window, timed.candidate.width));
    if (options_.lag) return timed_at_lag(timed, std::min(*options_.lag, later)).value_or(timed);
    const auto at_lag = [&](int lag) {
      const bool may_gain = static_cast<double>(timed.candidate.window_time) >= kWorthALag * bound;
      return may_gain ? timed_at_lag(timed, lag) : std::nullopt;
    };
    const auto gains = [](const Timed& a, const Timed& b) {
      const auto ratio = static_cast<double>(b.candidate.window_time) / static_cast<double>(a.candidate.window_time);
      return ratio > kWorthALag;
    };
    const std::optional<Timed> late = at_lag(later);
    if (!late || !gains(*late, timed)) return timed;
    const std::optional<Timed> sooner = later > 1 ? at_lag(1) : std::nullopt;
    return sooner && !gains(*late, *sooner) ? *sooner : *late;
  }

  static Tick tolerated(Tick fastest) { return static_cast<Tick>(static_cast<double>(fastest) * kPlanTolerance); }

  static Candidate candidate_of(const PlanShape& shape, int width) {
    Candidate candidate;
    candidate.kind = shape.kind;
    candidate.depth = shape.placement.depth();
    candidate.pipelines = shape.placement.pipelines();
    candidate.width = width;
    candidate.peak_bytes = shape.largest_peak();
    return candidate;
  }

  Plan make_plan(const Timed& timed) const {
    Plan made;
    made.kind = timed.candidate.kind;
    made.depth = timed.candidate.depth;
    made.pipelines = timed.candidate.pipelines;
    made.width = timed.candidate.width;
    made.window = options_.window;
    made.preload = options_.preload;
    made.lag = timed.candidate.lag;
    made.provisional = timed.shape->provisional;
    made.cuts = timed.shape->cuts;
    seat_workers(made, profile_, workers_, previous(), timed.shape->slowness);
    return made;
  }

  const Plan* previous() const { return options_.previous ? &*options_.previous : nullptr; }

  // Seats the workers, places guards, and notes in the candidate what that moves and survives.
  Plan evaluate(Timed& timed, int fewest) const {
    Plan made = make_plan(timed);
    const TimingModel model = timing_model(profile_, options_.hardware, timed.shape->placement, made.width, made.cuts);
    const std::int64_t memory = options_.hardware.memory_bytes;
    std::vector<std::int64_t> free_bytes;
    for (const std::int64_t peak : timed.shape->peak_bytes) free_bytes.push_back(memory - peak);
    place_guards(made, model.stages, workers_, options_.redundancy, free_bytes);
    timed.candidate.survives = survival_of(made, model.stages, workers_, fewest, free_bytes);
    // Without a previous plan everybody loads everything, which says nothing about a plan.
    timed.candidate.moved_bytes = previous() != nullptr ? moved_bytes(profile_, previous(), made) : 0;
    return made;
  }

  // Tries to give the chosen plan a provisional step; or says why it has none.
  std::optional<NoStep> add_step(Timed& chosen, Plan& plan, int fewest) {
    const ProvisionalWish wish = options_.provisional;
    if (wish == ProvisionalWish::kOff) return NoStep::kNotWished;
    const std::vector<int> choices = provisional_choices(chosen.candidate, options_);
    if (choices.empty()) return NoStep::kWindows;
    const auto without = static_cast<double>(chosen.candidate.window_time);
    std::optional<Timed> best;
    const auto is_hidden = [&] {
      return best && static_cast<double>(best->candidate.window_time) <= kProvisionalTolerance * without;
    };
    for (auto left_out = choices.begin(); left_out != choices.end() && !is_hidden(); ++left_out) {
      PlanShape shape = with_provisional(profile_, options_.hardware, *chosen.shape, *left_out);
      if (!fits(shape)) return NoStep::kMemory;
      varied_.push_back(std::move(shape));
      Timed other{&varied_.back(), chosen.candidate};
      time(other);
      if (!best || other.candidate.window_time < best->candidate.window_time) best = other;
    }
    if (!is_hidden() && wish == ProvisionalWish::kAuto) return NoStep::kTime;
    Plan with = evaluate(*best, fewest);
    if (guard_copies(with) < guard_copies(plan) && wish == ProvisionalWish::kAuto) return NoStep::kCopies;
    chosen = *best;
    plan = std::move(with);
    return std::nullopt;
  }

  // Only plans that can have a step need the room that was kept for it.
  void drop_room(Timed& chosen, Plan& plan, int fewest) {
    if (!chosen.shape->has_room_for_step) return;
    varied_.push_back(with_provisional(profile_, options_.hardware, *chosen.shape, 0));
    chosen.shape = &varied_.back();
    chosen.candidate.peak_bytes = chosen.shape->largest_peak();
    plan = evaluate(chosen, fewest);
  }

  PlanReport choose() {
    PlanReport report;
    Timed* chosen = nullptr;
    const int fewest = fewest_workers();
    const Tick limit = tolerated(timed_.front().candidate.window_time);
    for (Timed& timed : timed_) {
      if (timed.candidate.window_time > limit) break;
      Plan made = evaluate(timed, fewest);
      const bool first = &timed == &timed_.front();
      if (first || rank(timed.candidate) < rank(report.chosen)) {
        report.plan = std::move(made);
        report.chosen = timed.candidate;
        chosen = &timed;
      }
    }
    // None has its step yet, so that like is compared with like.
    report.reason = reason_for(report.chosen, timed_candidates());
    report.no_step = add_step(*chosen, report.plan, fewest);
    if (report.no_step) drop_room(*chosen, report.plan, fewest);
    report.chosen = chosen->candidate;
    sort_fastest_first(timed_);  // again, since a step may take time
    report.candidates = timed_candidates();
    append_misfits(report.candidates);
    return report;
  }

  std::vector<Candidate> timed_candidates() const {
    std::vector<Candidate> candidates;
    for (const Timed& timed : timed_) candidates.push_back(timed.candidate);
    return candidates;
  }

  void append_misfits(std::vector<Candidate>& candidates) const {
    for (const PlanShape& shape : shapes_) {
      if (fits(shape)) continue;
      candidates.push_back(candidate_of(shape, widest(shape.placement.depth())));
      candidates.back().fits = false;
    }
  }

  std::tuple<std::int64_t, bool, int, int, Tick> rank(const Candidate& candidate) const {
    return {*candidate.moved_bytes, may_choose_clockwork(options_) && is_crowded(candidate),
            -candidate.survives->workers, -candidate.survives->hosts, candidate.window_time};
  }

  const ModelProfile& profile_;
  const std::vector<WorkerInfo>& workers_;
  PlanOptions options_;
  std::optional<int> fewest_;
  int count_;
  int deepest_;
  bool has_stragglers_;
  std::vector<PlanShape> shapes_;
  std::deque<PlanShape> varied_;  // of these, for workers that are not all equally fast, and with later updates
  std::vector<Timed> timed_;
};

}  // namespace

Result<PlanReport> plan(const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
                        const PlanOptions& options) {
  EVERSTEP_TRY(check_plan_input(profile, workers, options));
  Planner planner(profile, workers, options);
  if (!options.hardware.stage_times || (options.depth && options.width)) return planner.run();
  PlanOptions by_profile = options;
  by_profile.hardware.stage_times.reset();
  Planner shaper(profile, workers, by_profile);
  const auto shape = shaper.run();
  if (!shape) return shape.error();
  planner.keep_to(shape->plan, shaper.fewest_workers());
  return planner.run();
}

}  // namespace everstep::scheduler
