#include "trainer/loop/op_stream.h"

#include <algorithm>
#include <utility>

namespace everstep::trainer {
namespace {

using scheduler::Op;
using scheduler::OpKind;
using scheduler::Schedule;
using scheduler::ScheduleRequest;

constexpr int kPatternWindows = 3;

std::int64_t index_after_update(const std::vector<Op>& ops, std::int64_t window) {
  const auto update = std::find(ops.begin(), ops.end(), scheduler::update_of(window));
  EVERSTEP_CHECK(update != ops.end(), "a window without an update");
  return update - ops.begin() + 1;
}

}  // namespace

Result<OpStream> OpStream::make(ScheduleRequest request, int worker) {
  if (!is_trainable(request.kind)) {
    return invalid_argument(std::string(to_string(request.kind)) + " can be drawn and compared, but not trained",
                            "use clockwork, or a synchronous schedule such as 1f1b");
  }
  EVERSTEP_CHECK(!request.stop_after_rounds, "a stream of ops ends with a window");
  const std::int64_t windows = request.windows;
  request.windows = static_cast<int>(std::min<std::int64_t>(windows, kPatternWindows));
  auto pattern = scheduler::make_schedule(request);
  if (!pattern) return pattern.error();
  return OpStream(*std::move(pattern), worker, windows);
}

OpStream::OpStream(Schedule pattern, int worker, std::int64_t windows)
    : pattern_(std::move(pattern)), worker_(worker), windows_(windows) {
  if (pattern_.request.windows < kPatternWindows) return;
  repeat_begin_ = index_after_update(list(), pattern_.request.first_window);
  repeat_end_ = index_after_update(list(), pattern_.request.first_window + 1);
}

std::int64_t OpStream::size() const {
  return static_cast<std::int64_t>(list().size()) + repeats() * (repeat_end_ - repeat_begin_);
}

Op OpStream::at(std::int64_t index) const {
  if (index < repeat_end_ || repeats() == 0) return list()[index];
  const std::int64_t shift = std::min((index - repeat_begin_) / (repeat_end_ - repeat_begin_), repeats());
  Op op = list()[index - shift * (repeat_end_ - repeat_begin_)];
  op.window += shift;
  return op;
}

void OpStream::end_after(std::int64_t window) {
  const std::int64_t windows = window - pattern_.request.first_window + 1;
  if (windows >= windows_) return;
  ScheduleRequest request = pattern_.request;
  request.windows = static_cast<int>(std::min<std::int64_t>(windows, kPatternWindows));
  // The same request with fewer windows: it was accepted before.
  *this = OpStream(scheduler::make_schedule(request).value(), worker_, windows);
}

void OpStream::end_after_round(std::int64_t window, int round) {
  end_after(window);
  last_round_ = round;
}

bool OpStream::leaves_out(const Op& op) const {
  if (!last_round_ || op.window != last_window()) return false;
  const bool belongs_to_the_end = op.kind == OpKind::kStartReduce || op.kind == OpKind::kUpdate;
  return belongs_to_the_end || op.round > *last_round_;
}

Position OpStream::position_of(const Op& op) const {
  // Slices after the first are whole windows, so any of them tells where a later window's minibatches lie.
  Op known = op;
  known.window = std::min(op.window, pattern_.slices.back().window);
  return {pattern_.position_of(worker_, known).value + (op.window - known.window) * pattern_.request.window};
}

}  // namespace everstep::trainer
