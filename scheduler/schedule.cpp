#include "scheduler/schedule.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

Status check_request(const ScheduleRequest& request) {
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
      request.chunks_per_device > kMostChunks || request.window > kMostMinibatches ||
      request.first_window > kLastPosition / std::max(1, request.window)) {
    return invalid_argument(
        "the schedule is too large",
        "at most 1,000 devices, 1,000,000 groups and windows, 1,000,000,000 minibatches per window");
  }
  EVERSTEP_TRY(at_least("depth", request.depth, 1));
  EVERSTEP_TRY(at_least("width", request.width, 1));
  EVERSTEP_TRY(at_least("windows", request.windows, 1));
  EVERSTEP_TRY(at_least("first window", request.first_window, 0));
  EVERSTEP_TRY(at_least("first minibatch", request.first_minibatch, 0));
  EVERSTEP_TRY(at_least("rounds between captures", request.capture_every_rounds, 0));
  const std::int64_t devices = std::int64_t{request.depth} * request.width;
  if (request.window < devices) {
    return invalid_argument("a window of " + std::to_string(request.window) + " minibatches is too small for " +
                                std::to_string(devices) + " devices (depth * width)",
                            "enlarge the window or use fewer devices");
  }
  const bool only_the_update_is_left = request.first_minibatch == request.window && request.kind == ScheduleKind::kAmdp;
  if (request.first_minibatch >= request.window && !only_the_update_is_left) {
    return invalid_argument("the first minibatch is " + std::to_string(request.first_minibatch) +
                            ", but a window has " + std::to_string(request.window));
  }
  if (request.preload != 1 && request.preload != 2) {
    return invalid_argument("preload is " + std::to_string(request.preload) + ", must be 1 or 2");
  }
  if (request.stop_after_rounds) EVERSTEP_TRY(at_least("rounds before the stop", *request.stop_after_rounds, 1));
  return {};
}

bool drains_after(const ScheduleRequest& request, std::int64_t window) {
  if (!is_asynchronous(request.kind)) return true;
  return std::find(request.flush_after.begin(), request.flush_after.end(), window) != request.flush_after.end();
}

}  // namespace

int Schedule::rounds_in(const WindowSlice& slice) const {
  const int super_round = request.depth * request.width;
  return (slice.end - slice.first + super_round - 1) / super_round;
}

int Schedule::minibatches_in(const WindowSlice& slice, int round, int group) const {
  const int dealt_before = (round * request.width + group) * request.depth;
  return std::clamp(slice.end - slice.first - dealt_before, 0, request.depth);
}

std::vector<MinibatchRange> share_of_group(const ScheduleRequest& request, int group, int rounds) {
  std::vector<MinibatchRange> share;
  for (int round = 0; round < rounds; ++round) {
    const int first = (round * request.width + group) * request.depth;
    if (first < request.window) share.push_back({first, std::min(first + request.depth, request.window)});
  }
  return share;
}

bool Schedule::starts_drained(std::int64_t window) const {
  return window == request.first_window || drains_after(request, window - 1);
}

Position Schedule::position_of(int worker, const Op& op) const {
  const int dealt_before = (op.round * request.width + group_of(worker)) * request.depth;
  return {op.window * request.window + slice_of(op).first + dealt_before + op.minibatch};
}

Position Schedule::next_position() const { return {slices.back().window * request.window + slices.back().end}; }

int Schedule::remaining_in_window() const { return request.window - slices.back().end; }

Result<std::vector<WindowSlice>> slices_of(const ScheduleRequest& request) {
  EVERSTEP_TRY(check_request(request));
  std::vector<WindowSlice> slices;
  for (int i = 0; i < request.windows; ++i) {
    slices.push_back({request.first_window + i, i == 0 ? request.first_minibatch : 0, request.window, true});
  }
  if (request.stop_after_rounds) {
    WindowSlice& last = slices.back();
    const std::int64_t run = std::int64_t{*request.stop_after_rounds} * request.depth * request.width;
    last.end = static_cast<int>(std::min<std::int64_t>(request.window, last.first + run));
    last.complete = last.end == request.window;
  }
  return slices;
}

}  // namespace everstep::scheduler
