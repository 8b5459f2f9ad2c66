#include "launcher/worker/run_trace.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "scheduler/draw/timeline_trace.h"

namespace everstep::launcher {
namespace {

constexpr double kMicrosecondsPerTick = 1e-3;

struct Lines {
  std::vector<scheduler::Op> ops;
  std::vector<scheduler::OpSpan> spans;
};

Result<Lines> parse_lines(const std::string& text) {
  Lines lines;
  std::istringstream input(text);
  std::string token;
  scheduler::OpSpan span;
  while (input >> token >> span.begin >> span.end) {
    const auto op = scheduler::parse_op(token);
    if (!op) return Error{ErrorCode::kInternal, "a worker's trace is damaged: " + op.error().message, ""};
    if (span.end == 0) continue;
    lines.ops.push_back(*op);
    lines.spans.push_back(span);
  }
  if (!input.eof()) return Error{ErrorCode::kInternal, "a worker's trace is damaged", ""};
  return lines;
}

// The trace starts when the first op does.
void start_at_zero(scheduler::Timeline& timeline) {
  Tick first = std::numeric_limits<Tick>::max();
  for (const auto& spans : timeline.spans) {
    for (const scheduler::OpSpan& span : spans) first = std::min(first, span.begin);
  }
  for (auto& spans : timeline.spans) {
    for (scheduler::OpSpan& span : spans) span = {span.begin - first, span.end - first};
  }
}

}  // namespace

std::string trace_line(const trainer::OpRecord& record) {
  return to_string(record.op) + " " + std::to_string(record.started) + " " + std::to_string(record.end) + "\n";
}

Result<std::string> merge_traces(const scheduler::Plan& plan, const std::vector<std::string>& workers) {
  // What ran is a schedule too, only that nobody made it beforehand.
  scheduler::Schedule ran{request_of(plan), placement_of(plan), {}, {}};
  scheduler::Timeline timeline;
  for (const std::string& text : workers) {
    auto lines = parse_lines(text);
    if (!lines) return lines.error();
    ran.workers.push_back(std::move(lines->ops));
    timeline.spans.push_back(std::move(lines->spans));
    timeline.weights.emplace_back();  // those that ran stand among the ops
  }
  start_at_zero(timeline);
  return draw_trace(ran, timeline, kMicrosecondsPerTick);
}

}  // namespace everstep::launcher
