#include "trainer/update/anomaly.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"
#include "scheduler/versions.h"
#include "trainer/update/fixed_point.h"

namespace everstep::trainer {
namespace {

// Infinities and NaNs are the numbers whose exponent is all ones: the largest magnitudes, as bits.
template <typename Bits>
bool has_none_from(std::span<const Bits> numbers, Bits sign, Bits infinity) {
  Bits largest = 0;
  for (const Bits number : numbers) largest = std::max<Bits>(largest, number & static_cast<Bits>(~sign));
  return largest < infinity;
}

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
  if (precision == Precision::kBf16) {
    return has_none_from<std::uint16_t>(tensor.as<const std::uint16_t>(), 0x8000U, 0x7F80U);
  }
  return has_none_from<std::uint32_t>(tensor.as<const std::uint32_t>(), 0x80000000U, 0x7F800000U);
}

void OriginWatch::forward(const Pass& pass, bool finite_input, const Buffer& output, bool is_good) {
  const bool finite_output = is_good && is_finite(output);
  note(pass, finite_input, finite_output);
  if (!finite_input || !finite_output) spoilt_.emplace(pass.stage, pass.position);
}

void OriginWatch::backward(const Pass& pass, bool finite_input, const Buffer& output, bool is_good) {
  const bool was_spoilt = spoilt_.erase({pass.stage, pass.position}) > 0;
  note(pass, finite_input && !was_spoilt, is_good && is_finite(output));
}

void OriginWatch::note(const Pass& pass, bool finite_input, bool finite_output) {
  if (!finite_input || finite_output) return;
  const auto [origin, is_first] = origins_.try_emplace(pass.window, pass.position);
  if (!is_first) origin->second = std::min(origin->second, pass.position);
}

std::optional<Position> OriginWatch::take(std::int64_t window) {
  const auto origin = origins_.extract(window);
  return origin.empty() ? std::nullopt : std::optional(origin.mapped());
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
    const auto& minibatch = records[worker].origin;
    if (decision.finite || !minibatch) continue;
    const Position position{first + *minibatch};
    if (!anomaly.origin || position < anomaly.origin->position) anomaly.origin = {worker, position, true};
  }
  if (anomaly.origin && !starts_drained) {
    anomaly.origin->repeats = meets_one_version(schedule, static_cast<int>(anomaly.origin->position.value - first));
  }
  return anomaly;
}

Error error_of(const Anomaly& anomaly) {
  const std::string what = anomaly.norm_limit > 0 ? " is far larger than those before it" : " is not finite";
  std::string place;
  if (anomaly.origin) {
    place = ": minibatch " + std::to_string(anomaly.origin->position.value) + " on worker " +
            std::to_string(anomaly.origin->worker);
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
