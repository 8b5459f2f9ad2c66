#include "trainer/update/optimizer.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

using kernels::AdamWConstants;

AdamWConstants constants_of(const AdamOptions& options, const StepInput& input, bool decay) {
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

Buffer elements(const Buffer& whole, const StageLayout::Entry& entry, std::size_t element_bytes) {
  return whole.part(entry.offset * element_bytes, entry.parameter.elements() * element_bytes);
}

}  // namespace

StageOptimizer::StageOptimizer(StageLayout layout, Precision precision, Accumulation accumulation, AdamOptions options,
                               Buffer master, DeviceMemory& memory)
    : layout_(std::move(layout)),
      precision_(precision),
      accumulation_(accumulation),
      options_(options),
      memory_(memory),
      master_(std::move(master)),
      first_moment_(memory.allocate_zeroed(layout_.elements * sizeof(float))),
      second_moment_(memory.allocate_zeroed(layout_.elements * sizeof(float))) {
  const std::size_t expected = precision == Precision::kBf16 ? layout_.elements * sizeof(float) : 0;
  EVERSTEP_CHECK(master_.size == expected, "a master copy is kept under bf16 and only there");
}

std::vector<Noted<double>> StageOptimizer::sums_of_squares(const Buffer& gradient) const {
  std::vector<Noted<double>> sums;
  for (const StageLayout::Entry& entry : layout_.entries) {
    sums.push_back(memory_.sum_of_squares(accumulation_, elements(gradient, entry, sum_bytes(accumulation_))));
  }
  return sums;
}

void StageOptimizer::step(const StepInput& input, const Buffer& gradient, const Buffer& weights) {
  const Buffer& master = precision_ == Precision::kBf16 ? master_ : weights;
  const AdamWConstants decayed = constants_of(options_, input, true);
  const AdamWConstants kept = constants_of(options_, input, false);
  for (const StageLayout::Entry& entry : layout_.entries) {
    const auto floats = [&](const Buffer& whole) { return elements(whole, entry, sizeof(float)); };
    memory_.adamw(accumulation_, entry.parameter.decay ? decayed : kept,
                  {floats(master), floats(first_moment_), floats(second_moment_),
                   elements(gradient, entry, sum_bytes(accumulation_))});
  }
  if (precision_ == Precision::kBf16) memory_.round_to_bf16(weights, master_);
}

void StageOptimizer::try_step(const StepInput& input, const Buffer& gradient, const Buffer& weights,
                              const Buffer& provisional) {
  const Buffer& master = precision_ == Precision::kBf16 ? master_ : weights;
  const AdamWConstants decayed = constants_of(options_, input, true);
  const AdamWConstants kept = constants_of(options_, input, false);
  const std::size_t weight_bytes = provisional.size / static_cast<std::size_t>(layout_.elements);
  for (const StageLayout::Entry& entry : layout_.entries) {
    const auto floats = [&](const Buffer& whole) { return elements(whole, entry, sizeof(float)); };
    memory_.adamw_trial(accumulation_, precision_, entry.parameter.decay ? decayed : kept,
                        {floats(master), floats(first_moment_), floats(second_moment_),
                         elements(gradient, entry, sum_bytes(accumulation_))},
                        elements(provisional, entry, weight_bytes));
  }
}

std::int64_t StageOptimizer::state_bytes() const {
  return static_cast<std::int64_t>(master_.size + first_moment_.size + second_moment_.size);
}

}  // namespace everstep::trainer
