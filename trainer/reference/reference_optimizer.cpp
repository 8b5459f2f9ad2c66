#include "trainer/reference/reference_optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace everstep::trainer {
namespace {

// Chunks of 4096 elements, eight partial sums in each.
double sum_of_squares(const ReferenceParameter& parameter) {
  double sum = 0;
  double partial[8] = {};
  const std::size_t size = parameter.gradient.size();
  for (std::size_t i = 0; i < size; ++i) {
    const double value = parameter.gradient[i];
    partial[i % 8] += value * value;
    if ((i + 1) % 4096 != 0 && i + 1 != size) continue;
    double chunk = 0;
    for (double& part : partial) chunk += std::exchange(part, 0);
    sum += chunk;
  }
  return sum;
}

template <typename Sum>
std::vector<float> floats_of(std::span<const Sum> sums, std::span<const Sum> tied_sums, double unit) {
  std::vector<float> gradient;
  gradient.reserve(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Sum sum = tied_sums.empty() ? sums[i] : sums[i] + tied_sums[i];
    gradient.push_back(static_cast<float>(static_cast<double>(sum) * unit));
  }
  return gradient;
}

}  // namespace

std::vector<float> gradient_of(std::span<const std::int64_t> sums, std::span<const std::int64_t> tied_sums) {
  return floats_of(sums, tied_sums, 0x1p-48);
}

std::vector<float> gradient_of(std::span<const float> sums, std::span<const float> tied_sums) {
  return floats_of(sums, tied_sums, 1);
}

double global_gradient_norm(const std::vector<ReferenceParameter>& parameters) {
  double sum = 0;
  bool counted_tied = false;
  for (const ReferenceParameter& parameter : parameters) {
    if (parameter.spec.tied && counted_tied) continue;
    counted_tied = counted_tied || parameter.spec.tied;
    sum += sum_of_squares(parameter);
  }
  return std::sqrt(sum);
}

double reference_clip_scale(const AdamOptions& options, double gradient_norm) {
  return options.clip_norm > 0 ? std::min(1.0, options.clip_norm / (gradient_norm + 1e-6)) : 1.0;
}

void adamw_step(std::vector<ReferenceParameter>& parameters, const AdamOptions& options, double learning_rate,
                double gradient_norm, std::int64_t step) {
  const double clip = reference_clip_scale(options, gradient_norm);
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  const auto beta1 = static_cast<float>(options.beta1);
  const auto beta2 = static_cast<float>(options.beta2);
  const auto new_share1 = static_cast<float>(1 - options.beta1);
  const auto new_share2 = static_cast<float>(1 - options.beta2);
  const auto step_size = static_cast<float>(learning_rate / correction1);
  for (ReferenceParameter& parameter : parameters) {
    const auto keep = static_cast<float>(parameter.spec.decay ? 1 - learning_rate * options.weight_decay : 1.0);
    for (std::size_t i = 0; i < parameter.value.size(); ++i) {
      const float gradient = parameter.gradient[i] * static_cast<float>(clip);
      float& first = parameter.first_moment[i];
      float& second = parameter.second_moment[i];
      first = beta1 * first + new_share1 * gradient;
      second = beta2 * second + new_share2 * (gradient * gradient);
      const float root = std::sqrt(second) / static_cast<float>(std::sqrt(correction2));
      const float direction = first / (root + static_cast<float>(options.epsilon));
      parameter.value[i] = parameter.value[i] * keep - step_size * direction;
    }
  }
}

std::vector<float> adamw_trial(const ReferenceParameter& parameter, const AdamOptions& options, double learning_rate,
                               double scale, std::int64_t step) {
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  const auto beta1 = static_cast<float>(options.beta1);
  const auto beta2 = static_cast<float>(options.beta2);
  const auto keep = static_cast<float>(parameter.spec.decay ? 1 - learning_rate * options.weight_decay : 1.0);
  std::vector<float> values(parameter.value.begin(), parameter.value.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float gradient = parameter.gradient[i] * static_cast<float>(scale);
    const float first = beta1 * parameter.first_moment[i] + static_cast<float>(1 - options.beta1) * gradient;
    const float second =
        beta2 * parameter.second_moment[i] + static_cast<float>(1 - options.beta2) * (gradient * gradient);
    const float root = std::sqrt(second) / static_cast<float>(std::sqrt(correction2));
    const float direction = first / (root + static_cast<float>(options.epsilon));
    const float value = values[i] * keep - static_cast<float>(learning_rate / correction1) * direction;
    if (std::isfinite(value)) values[i] = value;
  }
  return values;
}

double reference_learning_rate(const LearningRate& schedule, std::int64_t samples) {
  const auto now = static_cast<double>(samples);
  const auto warm = static_cast<double>(schedule.warmup_samples);
  const auto total = static_cast<double>(schedule.total_samples);
  if (now < warm) return schedule.peak * now / warm;
  if (schedule.decay == Decay::kConstant) return schedule.peak;
  if (now >= total) return schedule.floor;
  const double progress = (now - warm) / (total - warm);
  const double left =
      schedule.decay == Decay::kLinear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return schedule.floor + (schedule.peak - schedule.floor) * left;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fc0;
  const std::uint32_t is_odd = (bits >> 16) & 1;
  return static_cast<std::uint16_t>((bits + 0x7fff + is_odd) >> 16);
}

}  // namespace everstep::trainer
