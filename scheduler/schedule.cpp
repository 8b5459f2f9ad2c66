#include "scheduler/schedule.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/clockwork.h"

namespace everstep::scheduler {
namespace {

int pipelines_of(const ScheduleRequest& request) {
  return request.pipelines == 0 ? usual_clockwork_pipelines(request.depth) : request.pipelines;
}

Clock clock_of(const ScheduleRequest& request) { return {request.depth, pipelines_of(request), request.lag}; }

// In windows that follow another without a drain.
int lagging_rounds_of(const ScheduleRequest& request) {
  if (request.kind == ScheduleKind::kClockwork) return clock_of(request).lagging_rounds();
  return is_asynchronous(request.kind) ? 1 : 0;
}

// Whether the update of a window is common to all workers and stands among the ops of the next one.
bool updates_in_next_window(ScheduleKind kind) {
  return kind == ScheduleKind::kAmdp || kind == ScheduleKind::kClockwork;
}

ProvisionalRange provisional_range_of(const ScheduleRequest& request) {
  if (!updates_in_next_window(request.kind)) return {1, 0};
  const int super_round = super_round_size(request);
  const int rounds = (request.window + super_round - 1) / super_round;
  if (request.kind == ScheduleKind::kClockwork) return clock_of(request).provisional_range(rounds);
  // In AMDP a round ends among the first forwards of the next one, and the update is made in a window's first round.
  return {1, rounds - 1};
}

Status check_provisional(const ScheduleRequest& request) {
  if (request.provisional == 0) return {};
  if (!updates_in_next_window(request.kind)) {
    return invalid_argument("a provisional step needs windows that begin before the update of the one before",
                            "use clockwork or amdp");
  }
  const ProvisionalRange range = provisional_range_of(request);
  if (range.fewest <= request.provisional && request.provisional <= range.most) return {};
  return invalid_argument(
      "a provisional step that leaves out " + std::to_string(request.provisional) +
          " super-rounds of a window is not possible",
      range.empty() ? "use more minibatches per update"
                    : "between " + std::to_string(range.fewest) + " and " + std::to_string(range.most) + " are");
}

Status check_clockwork(const ScheduleRequest& request) {
  if (!is_clockwork_shape(request.depth, pipelines_of(request))) return placement_of(request).error();
  if (request.kind == ScheduleKind::kClockworkSync) return {};
  const int largest = clock_of(request).largest_lag(request.window, request.width);
  if (request.lag <= largest) return {};
  return invalid_argument("the lag is " + std::to_string(request.lag) + " slots, at most " + std::to_string(largest) +
                              " are possible with this window",
                          "the update must come before the next window's first reduce");
}

bool drains_after(const ScheduleRequest& request, std::int64_t window) {
  if (!is_asynchronous(request.kind)) return true;
  return std::find(request.flush_after.begin(), request.flush_after.end(), window) != request.flush_after.end();
}

bool starts_drained_in(const ScheduleRequest& request, std::int64_t window) {
  return window == request.first_window || drains_after(request, window - 1);
}

int rounds_before_cut_in(const ScheduleRequest& request, std::int64_t window) {
  return starts_drained_in(request, window) ? 1 : std::max(1, lagging_rounds_of(request));
}

}  // namespace

ScheduleRequest request_for(ScheduleKind kind, int depth, int pipelines) {
  ScheduleRequest request;
  request.kind = kind;
  request.depth = depth;
  if (is_clockwork(kind)) request.pipelines = pipelines;
  return request;
}

Status check(const ScheduleRequest& request) {
  const auto at_least = [](const char* name, std::int64_t value, std::int64_t least) -> Status {
    if (value >= least) return {};
    return invalid_argument(std::string(name) + " is " + std::to_string(value) + ", must be at least " +
                            std::to_string(least));
  };
  // Far more than anybody runs, and small enough that products fit and a hostile text cannot ask for all memory.
  constexpr int kMost = 1'000'000;
  constexpr int kMostChunks = 1000;
  constexpr int kMostMinibatches = 1'000'000'000;
  constexpr std::int64_t kLastPosition = std::int64_t{1} << 60;
  if (request.depth > kMost / kMostChunks || request.width > kMost || request.windows > kMost ||
      request.chunks_per_device > kMostChunks || request.pipelines > kMost || request.lag > kMost ||
      request.window > kMostMinibatches || request.first_window > kLastPosition / std::max(1, request.window)) {
    return invalid_argument(
        "the schedule is too large",
        "at most 1,000 devices, 1,000,000 groups and windows, 1,000,000,000 minibatches per window");
  }
  EVERSTEP_TRY(at_least("depth", request.depth, 1));
  EVERSTEP_TRY(at_least("width", request.width, 1));
  EVERSTEP_TRY(at_least("windows", request.windows, 1));
  EVERSTEP_TRY(at_least("first window", request.first_window, 0));
  EVERSTEP_TRY(at_least("first minibatch", request.first_minibatch, 0));
  EVERSTEP_TRY(at_least("pipelines", request.pipelines, 0));
  EVERSTEP_TRY(at_least("lag", request.lag, 0));
  EVERSTEP_TRY(at_least("super-rounds without a part in the provisional step", request.provisional, 0));
  EVERSTEP_TRY(at_least("rounds between captures", request.capture_every_rounds, 0));
  const std::int64_t devices = std::int64_t{request.depth} * request.width;
  if (request.window < devices) {
    return invalid_argument("a window of " + std::to_string(request.window) + " minibatches is too small for " +
                                std::to_string(devices) + " devices (depth * width)",
                            "enlarge the window or use fewer devices");
  }
  const bool only_the_update_is_left =
      request.first_minibatch == request.window && updates_in_next_window(request.kind);
  if (request.first_minibatch >= request.window && !only_the_update_is_left) {
    return invalid_argument("the first minibatch is " + std::to_string(request.first_minibatch) +
                            ", but a window has " + std::to_string(request.window));
  }
  if (request.preload != 1 && request.preload != 2) {
    return invalid_argument("preload is " + std::to_string(request.preload) + ", must be 1 or 2");
  }
  if (request.stop_after_rounds) EVERSTEP_TRY(at_least("rounds before the stop", *request.stop_after_rounds, 1));
  if (is_clockwork(request.kind)) EVERSTEP_TRY(check_clockwork(request));
  return check_provisional(request);
}

int round_size(const ScheduleRequest& request) {
  return is_clockwork(request.kind) ? pipelines_of(request) : request.depth;
}

ProvisionalRange provisional_range(const ScheduleRequest& request) { return provisional_range_of(request); }

Result<Placement> placement_of(const ScheduleRequest& request) {
  return Placement::make(request.kind, request.depth, request.chunks_per_device, request.pipelines);
}

std::optional<int> provisional_round(const ScheduleRequest& request, int first) {
  const int super_round = super_round_size(request);
  const int rounds = (request.window - first + super_round - 1) / super_round;
  const int last = rounds - 1 - request.provisional;
  return request.provisional > 0 && last >= 0 ? std::optional(last) : std::nullopt;
}

std::optional<int> provisional_minibatches(const ScheduleRequest& request) {
  const auto last = provisional_round(request, request.first_minibatch);
  if (!last) return std::nullopt;
  return request.first_minibatch + (*last + 1) * super_round_size(request);
}

int Schedule::rounds_in(const WindowSlice& slice) const {
  const int super_round = super_round_size(request);
  return (slice.end - slice.first + super_round - 1) / super_round;
}

int Schedule::minibatches_in(const WindowSlice& slice, int round, int group) const {
  const int dealt_before = (round * request.width + group) * placement.round_size();
  return std::clamp(slice.end - slice.first - dealt_before, 0, placement.round_size());
}

std::vector<MinibatchRange> share_of_group(const ScheduleRequest& request, int group, int rounds) {
  std::vector<MinibatchRange> share;
  const int size = round_size(request);
  for (int round = 0; round < rounds; ++round) {
    const int first = (round * request.width + group) * size;
    if (first < request.window) share.push_back({first, std::min(first + size, request.window)});
  }
  return share;
}

bool Schedule::starts_drained(std::int64_t window) const { return starts_drained_in(request, window); }

int Schedule::lagging_rounds(std::int64_t window) const {
  return starts_drained(window) ? 0 : lagging_rounds_of(request);
}

int Schedule::rounds_before_cut(std::int64_t window) const { return rounds_before_cut_in(request, window); }

std::optional<int> Schedule::provisional_round(std::int64_t window) const {
  const WindowSlice& slice = slices[window - request.first_window];
  const auto last = everstep::scheduler::provisional_round(request, slice.first);
  return last && *last < rounds_in(slice) ? last : std::nullopt;
}

bool Schedule::starts_provisional(std::int64_t window) const {
  return !starts_drained(window) && provisional_round(window - 1).has_value();
}

bool Schedule::two_windows_meet(int device, int stage) const {
  if (request.kind == ScheduleKind::kClockwork) return clock_of(request).two_windows_meet(device, stage);
  return request.kind == ScheduleKind::kAmdp && stage == placement.stages() - 1;
}

Position Schedule::position_of(int worker, const Op& op) const {
  const int dealt_before = (op.round * request.width + group_of(worker)) * placement.round_size();
  return {op.window * request.window + slice_of(op).first + dealt_before + op.minibatch};
}

Position Schedule::next_position() const { return {slices.back().window * request.window + slices.back().end}; }

int Schedule::remaining_in_window() const { return request.window - slices.back().end; }

Result<std::vector<WindowSlice>> slices_of(const ScheduleRequest& request) {
  EVERSTEP_TRY(check(request));
  std::vector<WindowSlice> slices;
  for (int i = 0; i < request.windows; ++i) {
    slices.push_back({request.first_window + i, i == 0 ? request.first_minibatch : 0, request.window, true});
  }
  if (request.stop_after_rounds) {
    WindowSlice& last = slices.back();
    const int rounds = std::max(*request.stop_after_rounds, rounds_before_cut_in(request, last.window));
    const std::int64_t run = std::int64_t{rounds} * super_round_size(request);
    last.end = static_cast<int>(std::min<std::int64_t>(request.window, last.first + run));
    last.complete = last.end == request.window;
  }
  return slices;
}

}  // namespace everstep::scheduler
