#include "tests/scheduler/naive_shape.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

bool is_amdp(const ScheduleRequest& request) {
  return request.kind == ScheduleKind::kAmdp || request.kind == ScheduleKind::kAmdpSync;
}

}  // namespace

std::vector<DealtMinibatch> deal(const ScheduleRequest& request) {
  std::vector<DealtMinibatch> dealt;
  const int super_round = request.depth * request.width;
  for (int i = 0; i < request.windows; ++i) {
    const int first = i == 0 ? request.first_minibatch : 0;
    const std::int64_t window = request.first_window + i;
    for (int card = 0; first + card < request.window; ++card) {
      const int round = card / super_round;
      if (i == request.windows - 1 && request.stop_after_rounds && round == *request.stop_after_rounds) break;
      dealt.push_back({window, round, card % super_round / request.depth, card % request.depth,
                       window * request.window + first + card});
    }
  }
  return dealt;
}

int naive_pipelines(const ScheduleRequest& request) {
  if (is_amdp(request)) return request.depth / 2;
  return request.kind == ScheduleKind::kTwoDirections ? 2 : 1;
}

int naive_stages(const ScheduleRequest& request) {
  return request.kind == ScheduleKind::kInterleaved ? request.depth * request.chunks_per_device : request.depth;
}

int naive_device_of(const ScheduleRequest& request, int pipeline, int stage) {
  const bool down = pipeline % 2 == 1;
  int device = down ? request.depth - 1 : 0;
  if (is_amdp(request)) device = down ? 2 * pipeline + 1 : 2 * pipeline;
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
  return device;
}

bool naive_completes(const ScheduleRequest& request, std::int64_t window) {
  const std::int64_t last = request.first_window + request.windows - 1;
  return window != last || deal(request).back().position == (last + 1) * request.window - 1;
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
  for (const auto& [window, last_round] : naive_last_rounds(request)) {
    const bool completes = naive_completes(request, window);
    for (const auto& [worker, stage] : naive_chunks(request)) {
      for (int round = 0; round <= last_round; ++round) {
        const int every = request.capture_every_rounds;
        const bool periodic = every > 0 && (round + 1) % every == 0 && round != last_round;
        const bool at_the_stop = round == last_round && !completes;
        if (periodic || at_the_stop) add(worker, {OpKind::kCapture, stage, 0, round, window});
      }
      if (completes) add(worker, {OpKind::kStartReduce, stage, 0, 0, window});
    }
    for (int worker = 0; completes && worker < request.depth * request.width; ++worker) add(worker, update_of(window));
  }
  return contents;
}

}  // namespace everstep::scheduler
