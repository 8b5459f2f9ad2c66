#include "tests/scheduler/naive_shape.h"

#include <algorithm>

#include "tests/scheduler/naive_clock.h"

namespace everstep::scheduler {
namespace {

bool is_amdp(const ScheduleRequest& request) {
  return request.kind == ScheduleKind::kAmdp || request.kind == ScheduleKind::kAmdpSync;
}

}  // namespace

std::vector<DealtMinibatch> deal(const ScheduleRequest& request) {
  std::vector<DealtMinibatch> dealt;
  const int hand = is_clockwork(request.kind) ? naive_pipelines(request) : request.depth;
  const int super_round = hand * request.width;
  for (int i = 0; i < request.windows; ++i) {
    const int first = i == 0 ? request.first_minibatch : 0;
    const std::int64_t window = request.first_window + i;
    for (int card = 0; first + card < request.window; ++card) {
      const int round = card / super_round;
      const bool may_stop = round >= naive_rounds_before_cut(request, window);
      if (i == request.windows - 1 && request.stop_after_rounds && may_stop && round >= *request.stop_after_rounds)
        break;
      dealt.push_back({window, round, card % super_round / hand, card % hand, window * request.window + first + card});
    }
  }
  return dealt;
}

bool naive_starts_drained(const ScheduleRequest& request, std::int64_t window) {
  const auto& flushes = request.flush_after;
  return window == request.first_window || !is_asynchronous(request.kind) ||
         std::count(flushes.begin(), flushes.end(), window - 1) > 0;
}

int naive_lagging_rounds(const ScheduleRequest& request, std::int64_t window) {
  if (naive_starts_drained(request, window)) return 0;
  return request.kind == ScheduleKind::kClockwork ? naive_rounds_begun_before_update(request) : 1;
}

int naive_rounds_before_cut(const ScheduleRequest& request, std::int64_t window) {
  return std::max(1, naive_lagging_rounds(request, window));
}

int naive_pipelines(const ScheduleRequest& request) {
  if (is_clockwork(request.kind) && request.pipelines > 0) return request.pipelines;
  if (is_clockwork(request.kind)) return request.depth % 2 == 0 ? request.depth / 2 : 1;
  if (is_amdp(request)) return request.depth / 2;
  return request.kind == ScheduleKind::kTwoDirections ? 2 : 1;
}

int naive_stages(const ScheduleRequest& request) {
  return request.kind == ScheduleKind::kInterleaved ? request.depth * request.chunks_per_device : request.depth;
}

int naive_device_of(const ScheduleRequest& request, int pipeline, int stage) {
  const bool down = pipeline % 2 == 1 && !is_clockwork(request.kind);
  int device = down ? request.depth - 1 : 0;
  if (is_amdp(request)) device = down ? 2 * pipeline + 1 : 2 * pipeline;
  if (is_clockwork(request.kind)) device = request.depth / naive_pipelines(request) * pipeline;
  for (int step = 0; step < stage; ++step) {
    device += down ? -1 : 1;
    if (device == request.depth) device = 0;
    if (device < 0) device = request.depth - 1;
  }
  return device;
}

int naive_mirror_group_of(const ScheduleRequest& request, int device) {
  if (is_amdp(request) && request.depth > 2) return device % 4 == 0 || device % 4 == 3 ? 0 : 1;
  if (request.kind == ScheduleKind::kTwoDirections) return std::min(device, request.depth - 1 - device);
  if (is_clockwork(request.kind)) return device % (request.depth / naive_pipelines(request));
  return device;
}

bool naive_completes(const ScheduleRequest& request, std::int64_t window) {
  const std::int64_t last = request.first_window + request.windows - 1;
  const std::vector<DealtMinibatch> dealt = deal(request);
  return window != last || dealt.empty() || dealt.back().position == (last + 1) * request.window - 1;
}

std::map<std::int64_t, int> naive_last_rounds(const ScheduleRequest& request) {
  std::map<std::int64_t, int> rounds;
  for (const DealtMinibatch& item : deal(request)) rounds[item.window] = item.round;
  return rounds;
}

std::set<std::pair<int, int>> naive_chunks(const ScheduleRequest& request) {
  std::set<std::pair<int, int>> chunks;
  for (int group = 0; group < request.width; ++group) {
    for (int pipeline = 0; pipeline < naive_pipelines(request); ++pipeline) {
      for (int stage = 0; stage < naive_stages(request); ++stage) {
        chunks.insert({group * request.depth + naive_device_of(request, pipeline, stage), stage});
      }
    }
  }
  return chunks;
}

std::map<std::pair<int, std::string>, int> naive_contents(const ScheduleRequest& request) {
  std::map<std::pair<int, std::string>, int> contents;
  const auto add = [&](int worker, const Op& op) { ++contents[{worker, to_string(op)}]; };
  for (const DealtMinibatch& item : deal(request)) {
    for (int stage = 0; stage < naive_stages(request); ++stage) {
      const int device = naive_device_of(request, item.minibatch % naive_pipelines(request), stage);
      for (const OpKind kind : {OpKind::kForward, OpKind::kBackward}) {
        add(item.group * request.depth + device, {kind, stage, item.minibatch, item.round, item.window});
      }
    }
  }
  const std::map<std::int64_t, int> last_rounds = naive_last_rounds(request);
  for (std::int64_t window = request.first_window; window < request.first_window + request.windows; ++window) {
    const bool completes = naive_completes(request, window);
    for (int worker = 0; completes && worker < request.depth * request.width; ++worker) add(worker, update_of(window));
    if (!last_rounds.contains(window)) continue;  // resumed at its end
    const int last_round = last_rounds.at(window);
    for (const auto& [worker, stage] : naive_chunks(request)) {
      for (int round = 0; round <= last_round; ++round) {
        const int every = request.capture_every_rounds;
        const bool periodic = every > 0 && (round + 1) % every == 0 && round != last_round &&
                              round + 1 >= naive_rounds_before_cut(request, window);
        const bool at_the_stop = round == last_round && !completes;
        if (periodic || at_the_stop) add(worker, {OpKind::kCapture, stage, 0, round, window});
      }
      if (completes) add(worker, {OpKind::kStartReduce, stage, 0, 0, window});
    }
  }
  return contents;
}

}  // namespace everstep::scheduler
