#include <cmath>
#include <numbers>

#include "trainer/model/random_key.h"
#include "trainer/torch/gradient_sinks.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

// Box and Muller's pair of normal numbers from one draw of 64 bits: elements 2k and 2k + 1.
void fill_normal(const RandomStream& stream, double deviation, std::span<float> values) {
  constexpr double kUnit = 0x1p-32;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const std::uint64_t bits = stream.bits(i / 2);
    const double radius = deviation * std::sqrt(-2.0 * std::log((static_cast<double>(bits >> 32) + 1.0) * kUnit));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(bits & 0xFFFFFFFFU) * kUnit;
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

void fill(const ModelConfig& config, const StageLayout& layout, const Buffer& into, at::ScalarType type) {
  const Tensors views = parameter_views(layout, into, type);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const StageLayout::Entry& entry = layout.entries[i];
    views[i].copy_(initial_value(config, entry.block, entry.index, entry.parameter));
  }
}

}  // namespace

at::Tensor initial_value(const ModelConfig& config, int block, int index, const ParameterSpec& parameter) {
  if (parameter.init != ParameterSpec::Init::kNormal) {
    return at::full(parameter.shape, parameter.init == ParameterSpec::Init::kOne ? 1.0F : 0.0F, at::kFloat);
  }
  at::Tensor value = at::empty(parameter.shape, at::kFloat);
  // Tied parameters start equal: both draw what belongs to the embedding, parameter 0 of block 0.
  const RandomStream stream =
      random_stream(config.seed, RandomUse::kInit, parameter.tied ? 0 : block, parameter.tied ? 0 : index);
  fill_normal(stream, parameter.deviation, {value.mutable_data_ptr<float>(), static_cast<std::size_t>(value.numel())});
  return value;
}

void initialise_weights(const ModelConfig& config, const StageLayout& layout, const Buffer& weights) {
  fill(config, layout, weights, scalar_type(config));
}

void initialise_master(const ModelConfig& config, const StageLayout& layout, const Buffer& master) {
  fill(config, layout, master, at::kFloat);
}

}  // namespace everstep::trainer
