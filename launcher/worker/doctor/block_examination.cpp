#include "launcher/worker/doctor/block_examination.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "launcher/cli/json_number.h"
#include "launcher/worker/doctor/lone_stage.h"
#include "trainer/update/host_memory.h"

namespace everstep::launcher {
namespace {

using trainer::Precision;

constexpr Position kExamined{3};

trainer::ModelConfig examined_model(scheduler::ModelFamily family, Precision precision) {
  trainer::ModelConfig model;
  // Heads of a usual size, which a GPU's kernels for attention take.
  model.shape = {"examined", family, 1, 256, 4, 128, 512};
  model.minibatch = 4;
  model.precision = precision;
  model.next_sentence = family == scheduler::ModelFamily::kBert;
  return model;
}

struct Pass {
  double loss = 0;
  std::vector<float> gradient;

  bool operator==(const Pass&) const = default;
};

// A whole model where `memory` is.
class ExaminedModel {
 public:
  ExaminedModel(const trainer::ModelConfig& model, const trainer::DataSource& data, trainer::DeviceMemory& memory)
      : memory_(memory), stage_(model, 0, model.blocks(), trainer::Accumulation::kFloat, data, memory) {}

  Result<Pass> run() {
    const trainer::Buffer& sums = stage_.memory().gradients[kOneSum];
    memory_.zero(sums);
    auto output = stage_.compute().forward(kExamined, {});
    if (!output) return output.error();
    const auto gradient = stage_.compute().backward_input(kExamined, {}, kOneSum);
    if (!gradient) return gradient.error();
    EVERSTEP_TRY(stage_.compute().backward_weights(kExamined, kOneSum));
    memory_.wait_gathered();
    const auto numbers = memory_.fetch(sums);
    const auto floats = numbers.as<const float>();
    return Pass{output->loss.value(), {floats.begin(), floats.end()}};
  }

  // Of fp32 on the host: as far along the direction.
  void move(const std::vector<float>& direction, double distance) {
    const auto weights = stage_.memory().weights.as<float>();
    for (std::size_t i = 0; i < direction.size(); ++i) weights[i] += static_cast<float>(distance * direction[i]);
  }

 private:
  trainer::DeviceMemory& memory_;
  LoneStage stage_;
};

double length_of(const std::vector<float>& numbers) {
  double sum = 0;
  for (const float number : numbers) sum += static_cast<double>(number) * number;
  return std::sqrt(sum);
}

double distance_between(const Pass& pass, const Pass& expected) {
  std::vector<float> difference = pass.gradient;
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.gradient[i];
  return std::max(length_of(difference) / length_of(expected.gradient),
                  std::abs(pass.loss - expected.loss) / std::abs(expected.loss));
}

// How much the gradient's length differs from how the loss grows along it.
Result<double> distance_to_differences(ExaminedModel& model, const Pass& pass) {
  constexpr double kChangeOfLoss = 0.02;
  const double length = length_of(pass.gradient);
  const double step = kChangeOfLoss / (length * length);
  model.move(pass.gradient, step);
  const auto above = model.run();
  if (!above) return above.error();
  model.move(pass.gradient, -2 * step);
  const auto below = model.run();
  if (!below) return below.error();
  const double slope = (above->loss - below->loss) / (2 * step * length);
  return std::abs(slope / length - 1);
}

Result<BlockFigures> examine(const WorkerDevice& device, const trainer::ModelConfig& model,
                             const trainer::DataSource& data) {
  const bool is_fp32 = model.precision == Precision::kFp32;
  const auto on_device = device.make_memory();
  ExaminedModel examined(model, data, on_device ? *on_device : trainer::host_memory());
  const auto pass = examined.run();
  if (!pass) return pass.error();
  const auto again = examined.run();
  if (!again) return again.error();
  BlockFigures figures;
  figures.precision = is_fp32 ? "fp32" : "bf16";
  figures.loss = pass->loss;
  figures.repeats = *pass == *again;
  figures.is_finite = std::isfinite(pass->loss) && std::isfinite(length_of(pass->gradient));
  if (!on_device && is_fp32) {
    const auto distance = distance_to_differences(examined, *pass);
    if (!distance) return distance.error();
    figures.against = "differences";
    figures.distance = *distance;
    figures.expected_loss = pass->loss;
    return figures;
  }
  trainer::ModelConfig reference = model;
  if (!on_device) reference.precision = Precision::kFp32;
  const auto expected = ExaminedModel(reference, data, trainer::host_memory()).run();
  if (!expected) return expected.error();
  figures.against = on_device ? "cpu" : "fp32";
  figures.distance = distance_between(*pass, *expected);
  figures.expected_loss = expected->loss;
  return figures;
}

}  // namespace

Result<std::vector<BlockFigures>> examine_blocks(const WorkerDevice& device, const std::filesystem::path& directory) {
  std::vector<BlockFigures> all;
  for (const auto& [family, name] :
       {std::pair(scheduler::ModelFamily::kGpt, "gpt"), std::pair(scheduler::ModelFamily::kBert, "bert")}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const trainer::ModelConfig model = examined_model(family, precision);
      const auto data = open_doctor_data(directory, model);
      if (!data) return data.error();
      auto figures = examine(device, model, **data);
      if (!figures) return figures.error();
      figures->family = name;
      all.push_back(std::move(*figures));
    }
  }
  return all;
}

storage::Json blocks_json(const std::vector<BlockFigures>& blocks) {
  storage::Json list = storage::Json::array();
  for (const BlockFigures& block : blocks) {
    storage::Json one = storage::Json::object();
    one.set("family", block.family).set("precision", block.precision).set("against", block.against);
    one.set("distance", finite_or_null(block.distance)).set("loss", finite_or_null(block.loss));
    one.set("expected_loss", finite_or_null(block.expected_loss));
    list.append(one.set("repeats", block.repeats).set("finite", block.is_finite));
  }
  return storage::Json::object().set("blocks", std::move(list));
}

}  // namespace everstep::launcher
