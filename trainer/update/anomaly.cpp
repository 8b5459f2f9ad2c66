#include "trainer/update/anomaly.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "scheduler/versions.h"
#include "trainer/update/fixed_point.h"
#include "trainer/update/loops.h"

namespace everstep::trainer {
namespace {

// Whether all passes of the minibatch meet the window's own version of the weights though the one before is in flight.
bool meets_one_version(const scheduler::Schedule& shape, int minibatch) {
  scheduler::ScheduleRequest request = shape.request;
  request.first_window = 0;
  request.first_minibatch = 0;
  request.windows = 2;
  const auto schedule = scheduler::make_schedule(request);
  if (!schedule) return false;
  const scheduler::VersionTable table = scheduler::trace_versions(*schedule);
  for (int worker = 0; worker < std::ssize(schedule->workers); ++worker) {
    const std::vector<scheduler::Op>& ops = schedule->workers[worker];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!is_compute(ops[i]) || ops[i].window != 1) continue;
      const bool is_it = schedule->position_of(worker, ops[i]).value == request.window + minibatch;
      if (is_it && table.seen[worker][i].value != 1) return false;
    }
  }
  return true;
}

}  // namespace

bool is_finite(const Buffer& tensor, Precision precision) {
  return precision == Precision::kBf16 ? all_finite(tensor.as<const std::uint16_t>())
                                       : all_finite(tensor.as<const std::uint32_t>());
}

bool SourceWatch::Seen::is_known() const {
  return tensors.bad_input.is_known() && tensors.bad_output.is_known() && loss.is_known() && overflowed.is_known();
}

void SourceWatch::forward(const Pass& pass, const Tensors& tensors, const Noted<double>& loss) {
  unknown_.push_back({pass, true, tensors, loss, false});
  look();
}

void SourceWatch::backward(const Pass& pass, const Tensors& tensors, const Noted<bool>& overflowed) {
  unknown_.push_back({pass, false, tensors, 0.0, overflowed});
  look();
}

void SourceWatch::look() {
  for (; !unknown_.empty() && unknown_.front().is_known(); unknown_.pop_front()) judge(unknown_.front());
}

void SourceWatch::judge(const Seen& seen) {
  const auto& [pass, is_forward, tensors, loss, overflowed] = seen;
  const bool was_spoilt = !is_forward && spoilt_.erase({pass.stage, pass.position}) > 0;
  const bool finite_input = !tensors.bad_input.value() && !was_spoilt;
  const bool finite_output = !tensors.bad_output.value() && std::isfinite(loss.value()) && !overflowed.value();
  if (is_forward && (!finite_input || !finite_output)) spoilt_.emplace(pass.stage, pass.position);
  if (!finite_input || finite_output) return;
  const auto [source, is_first] = sources_.try_emplace(pass.window, pass.position);
  if (!is_first) source->second = std::min(source->second, pass.position);
}

bool SourceWatch::has_seen(std::int64_t window) {
  look();
  return sources_.contains(window);
}

std::optional<Position> SourceWatch::take(std::int64_t window) {
  look();
  const auto source = sources_.extract(window);
  return source.empty() ? std::nullopt : std::optional(source.mapped());
}

void NormHistory::add(double norm) {
  norms_.push_back(norm);
  if (norms_.size() > kKept) norms_.pop_front();
}

double NormHistory::limit(double factor) const {
  if (norms_.size() < kEnough) return 0;
  std::vector<double> sorted(norms_.begin(), norms_.end());
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return factor * *middle;
}

std::optional<Anomaly> find_anomaly(const scheduler::Schedule& schedule, const std::vector<UpdateRecord>& records,
                                    const UpdateDecision& decision, std::int64_t window, double norm_limit,
                                    bool starts_drained) {
  const bool explodes = norm_limit > 0 && decision.gradient_norm > norm_limit;
  if (decision.finite && !explodes) return std::nullopt;
  Anomaly anomaly{window, std::nullopt, decision.finite ? norm_limit : 0};
  const std::int64_t first = window * schedule.request.window;
  for (int worker = 0; worker < std::ssize(records); ++worker) {
    const auto& minibatch = records[worker].source;
    if (decision.finite || !minibatch) continue;
    const Position position{first + *minibatch};
    if (!anomaly.source || position < anomaly.source->position) anomaly.source = {worker, position, true};
  }
  if (anomaly.source && !starts_drained) {
    anomaly.source->repeats = meets_one_version(schedule, static_cast<int>(anomaly.source->position.value - first));
  }
  return anomaly;
}

Error error_of(const Anomaly& anomaly) {
  const std::string what = anomaly.norm_limit > 0 ? " is far larger than those before it" : " is not finite";
  std::string place;
  if (anomaly.source) {
    place = ": minibatch " + std::to_string(anomaly.source->position.value) + " on worker " +
            std::to_string(anomaly.source->worker);
  }
  return {ErrorCode::kDataLoss, "the gradient of window " + std::to_string(anomaly.window) + what + place,
          "the window is run again"};
}

std::string skip_reason(double norm_limit, double norm, Accumulation accumulation) {
  if (norm_limit > 0) {
    return "the gradient's norm of " + shortest_text(norm) + " was above " + shortest_text(norm_limit) + " (--explode)";
  }
  std::string reason = "the gradient was not finite";
  if (accumulation == Accumulation::kFixedPoint) {
    reason += ", or a minibatch's part of it had an element of " + shortest_text(kFixedPointRange) +
              " / --window or more, which the sums of --reproducible cannot hold";
  }
  return reason;
}

}  // namespace everstep::trainer
