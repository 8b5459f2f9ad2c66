#include "trainer/update/optimizer.h"

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "trainer/update/fixed_point.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

// Constants of one step in the precision of the state. Every owner computes them from the same doubles.
struct StepConstants {
  float clip_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float keep;  // what weight decay leaves of a weight
  float step_size;
  float root_of_correction2;
  float epsilon;
};

StepConstants constants_of(const AdamOptions& options, const StepInput& input, bool decay) {
  const auto step = static_cast<double>(input.step);
  const double correction1 = 1 - std::pow(options.beta1, step);
  const double correction2 = 1 - std::pow(options.beta2, step);
  const double keep = decay ? 1 - input.learning_rate * options.weight_decay : 1.0;
  const auto narrow = [](double value) { return static_cast<float>(value); };
  return {narrow(input.clip_scale),
          narrow(options.beta1),
          narrow(1 - options.beta1),
          narrow(options.beta2),
          narrow(1 - options.beta2),
          narrow(keep),
          narrow(input.learning_rate / correction1),
          narrow(std::sqrt(correction2)),
          narrow(options.epsilon)};
}

inline float to_float(float gradient) { return gradient; }
inline float to_float(std::int64_t gradient) { return from_fixed_point(gradient); }

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);  // to nearest, ties to even
}

struct StatePointers {
  float* __restrict master;
  float* __restrict first;
  float* __restrict second;
};

template <typename Sum>
void adam(const StepConstants& c, Sum* __restrict gradient, const StatePointers& state, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = to_float(gradient[i]) * c.clip_scale;
    const float first = c.beta1 * state.first[i] + c.one_minus_beta1 * g;
    const float second = c.beta2 * state.second[i] + c.one_minus_beta2 * (g * g);
    const float denominator = std::sqrt(second) / c.root_of_correction2 + c.epsilon;
    state.first[i] = first;
    state.second[i] = second;
    state.master[i] = state.master[i] * c.keep - c.step_size * (first / denominator);
    gradient[i] = 0;
  }
}

// Eight partial sums, element i in sum i mod 8, joined from left to right: an order that vector code can follow and
// that nothing but the number of elements decides.
template <typename Sum>
double sum_of_squares(const Sum* values, std::int64_t elements) {
  double partial[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= elements; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const double value = to_float(values[i + lane]);
      partial[lane] += value * value;
    }
  }
  for (int lane = 0; i < elements; ++i, ++lane) {
    const double value = to_float(values[i]);
    partial[lane] += value * value;
  }
  double sum = 0;
  for (const double value : partial) sum += value;
  return sum;
}

// Calls with the sums as what they are: float or std::int64_t.
template <typename Function>
void with_sums(Accumulation accumulation, const Buffer& gradient, Function function) {
  if (accumulation == Accumulation::kFloat) {
    function(gradient.as<float>().data());
  } else {
    function(gradient.as<std::int64_t>().data());
  }
}

}  // namespace

StageOptimizer::StageOptimizer(StageLayout layout, Precision precision, Accumulation accumulation, AdamOptions options,
                               Buffer master)
    : layout_(std::move(layout)),
      precision_(precision),
      accumulation_(accumulation),
      options_(options),
      master_(std::move(master)),
      first_moment_(allocate_zeroed(layout_.elements * sizeof(float))),
      second_moment_(allocate_zeroed(layout_.elements * sizeof(float))) {
  const std::size_t expected = precision == Precision::kBf16 ? layout_.elements * sizeof(float) : 0;
  EVERSTEP_CHECK(master_.size == expected, "a master copy is kept under bf16 and only there");
}

std::vector<double> StageOptimizer::sums_of_squares(const Buffer& gradient) const {
  std::vector<double> sums;
  with_sums(accumulation_, gradient, [&](const auto* values) {
    for (const StageLayout::Entry& entry : layout_.entries) {
      sums.push_back(sum_of_squares(values + entry.offset, entry.parameter.elements()));
    }
  });
  return sums;
}

void StageOptimizer::step(const StepInput& input, const Buffer& gradient, const Buffer& weights) {
  float* const master = (precision_ == Precision::kBf16 ? master_ : weights).as<float>().data();
  const StepConstants decayed = constants_of(options_, input, true);
  const StepConstants kept = constants_of(options_, input, false);
  with_sums(accumulation_, gradient, [&](auto* sums) {
    for (const StageLayout::Entry& entry : layout_.entries) {
      const StatePointers state{master + entry.offset, first_moment_.as<float>().data() + entry.offset,
                                second_moment_.as<float>().data() + entry.offset};
      adam(entry.parameter.decay ? decayed : kept, sums + entry.offset, state, entry.parameter.elements());
    }
  });
  if (precision_ == Precision::kFp32) return;
  const std::span<std::uint16_t> rounded = weights.as<std::uint16_t>();
  for (std::int64_t i = 0; i < layout_.elements; ++i) rounded[i] = to_bf16(master[i]);
}

std::int64_t StageOptimizer::state_bytes() const {
  return static_cast<std::int64_t>(master_.size + first_moment_.size + second_moment_.size);
}

}  // namespace everstep::trainer
