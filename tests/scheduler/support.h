#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/tick.h"
#include "scheduler/execution.h"
#include "scheduler/schedule.h"

// What the tests of schedules share.
namespace everstep::scheduler {

inline ScheduleRequest request_of(ScheduleKind kind, int depth, int width, int window, int windows) {
  ScheduleRequest request;
  request.kind = kind;
  request.depth = depth;
  request.width = width;
  request.window = window;
  request.windows = windows;
  return request;
}

inline std::string describe(const ScheduleRequest& request) {
  std::string text(to_string(request.kind));
  const auto add = [&](const char* name, std::int64_t value) { text += name + std::to_string(value); };
  add(" D=", request.depth);
  add(" W=", request.width);
  add(" M=", request.window);
  add(" windows=", request.windows);
  add(" chunks=", request.chunks_per_device);
  add(" preload=", request.preload);
  add(" P=", request.pipelines);
  add(" lag=", request.lag);
  if (request.provisional > 0) add(" provisional=", request.provisional);
  add(" first=", request.first_window);
  add("+", request.first_minibatch);
  if (request.stop_after_rounds) add(" stop=", *request.stop_after_rounds);
  add(" capture=", request.capture_every_rounds);
  for (const std::int64_t window : request.flush_after) add(" flush=", window);
  return text;
}

// Which kinds have a placement at a depth, as the design says it.
inline bool exists_at(ScheduleKind kind, int depth) {
  if (kind == ScheduleKind::kAmdp || kind == ScheduleKind::kAmdpSync) return depth == 2 || depth % 4 == 0;
  return kind != ScheduleKind::kTwoDirections || depth % 2 == 0;
}

inline std::vector<ScheduleKind> kinds_at(int depth) {
  std::vector<ScheduleKind> kinds;
  for (const ScheduleKind kind : all_schedule_kinds()) {
    if (exists_at(kind, depth)) kinds.push_back(kind);
  }
  return kinds;
}

// How GoogleTest shows ops and spans; it chose the name.
// NOLINTBEGIN(readability-identifier-naming)
inline void PrintTo(const Op& op, std::ostream* out) { *out << to_string(op); }
inline void PrintTo(const OpSpan& span, std::ostream* out) { *out << span.begin << ".." << span.end; }
// NOLINTEND(readability-identifier-naming)

// The ops of one worker without windows and stages, for comparison with the lists of the design: `F0 F2 B2 U`. An op of
// round r > 0 gets r primes.
inline std::string short_form(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) {
    if (closes_sum(op) || op.kind == OpKind::kTrialStep) continue;
    if (!text.empty()) text += ' ';
    if (op.kind == OpKind::kUpdate) {
      text += 'U';
      continue;
    }
    text += (op.kind == OpKind::kForward ? 'F' : 'B') + std::to_string(op.minibatch) + std::string(op.round, '\'');
  }
  return text;
}

// Costs that look random and depend on the seed and the op alone, so that two implementations meet the same ones.
struct SeededCosts {
  std::uint64_t seed = 0;

  Tick compute(int worker, const Op& op) const { return 1 + draw(0, name_of(worker, op), 9); }
  MessageCost message(int from, int to, const Op& op) const {
    return {draw(1, name_of(from, op), 5), draw(2, from * 4096 + to, 8)};
  }
  Tick reduce(int stage) const { return draw(3, stage, 6); }
  Tick update() const { return draw(4, 0, 6); }
  Tick provisional() const { return draw(5, 0, 12); }

 private:
  Tick draw(std::uint64_t use, std::int64_t index, std::uint64_t bound) const {
    return static_cast<Tick>(RandomStream(seed, use).below(static_cast<std::uint64_t>(index), bound));
  }
  static std::int64_t name_of(int worker, const Op& op) {
    std::int64_t name = op.window;
    for (const int part : {static_cast<int>(op.kind), op.round, op.minibatch, op.stage, worker})
      name = name * 256 + part;
    return name;
  }
};

inline Schedule schedule_with_step(ScheduleKind kind, int depth, int pipelines, int window, int windows,
                                   int provisional) {
  ScheduleRequest request = request_of(kind, depth, 1, window, windows);
  request.pipelines = pipelines;
  request.provisional = provisional;
  return make_schedule(request).value();
}

}  // namespace everstep::scheduler
