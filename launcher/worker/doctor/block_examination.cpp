#include "launcher/worker/doctor/block_examination.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
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

struct BlockFigures {
  std::string against;
  double distance = 0;
  double loss = 0;
  double expected_loss = 0;
  bool repeats = false;
  bool is_finite = false;
  std::string differs_from{};
};

// One model on all devices, one after the other.
class BlockComparison {
 public:
  BlockComparison(const trainer::ModelConfig& model, const trainer::DataSource& data) : model_(model), data_(data) {}

  Result<BlockFigures> examine(const WorkerDevice& device) {
    const bool is_fp32 = model_.precision == Precision::kFp32;
    const auto on_device = device.make_memory();
    ExaminedModel examined(model_, data_, on_device ? *on_device : trainer::host_memory());
    const auto pass = examined.run();
    if (!pass) return pass.error();
    const auto again = examined.run();
    if (!again) return again.error();
    BlockFigures figures;
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
    if (!expected_) expected_ = compute_expected(on_device != nullptr);
    if (!*expected_) return expected_->error();
    figures.against = on_device ? "cpu" : "fp32";
    figures.distance = distance_between(*pass, **expected_);
    figures.expected_loss = (*expected_)->loss;
    figures.differs_from = compare_with_twins(device, *pass);
    return figures;
  }

 private:
  struct Twin {
    std::string model;   // as its maker calls it
    std::string device;  // "cuda:0"
    Pass pass;
  };

  // On the host: what a device is compared with, and bf16 there.
  Result<Pass> compute_expected(bool for_device) const {
    trainer::ModelConfig reference = model_;
    if (!for_device) reference.precision = Precision::kFp32;
    return ExaminedModel(reference, data_, trainer::host_memory()).run();
  }

  // Devices of one name have one set of kernels, and so the same bits.
  std::string compare_with_twins(const WorkerDevice& device, const Pass& pass) {
    std::string model;
    for (const auto& [name, value] : device.provenance()) {
      if (name == "device-name") model = value;
    }
    const auto first = std::find_if(twins_.begin(), twins_.end(), [&](const Twin& one) { return one.model == model; });
    if (first != twins_.end()) return first->pass == pass ? "" : first->device;
    twins_.push_back({model, device.text(), pass});
    return "";
  }

  const trainer::ModelConfig& model_;
  const trainer::DataSource& data_;
  std::optional<Result<Pass>> expected_;
  std::vector<Twin> twins_;  // the first device of each name
};

storage::Json figures_json(storage::Json one, const BlockFigures& block) {
  one.set("against", block.against).set("distance", finite_or_null(block.distance));
  one.set("loss", finite_or_null(block.loss)).set("expected_loss", finite_or_null(block.expected_loss));
  one.set("repeats", block.repeats).set("finite", block.is_finite);
  return one.set("differs_from", block.differs_from);
}

}  // namespace

Result<storage::Json> examine_blocks(const std::vector<WorkerDevice>& devices, const std::filesystem::path& directory) {
  storage::Json list = storage::Json::array();
  for (const auto& [family, name] :
       {std::pair(scheduler::ModelFamily::kGpt, "gpt"), std::pair(scheduler::ModelFamily::kBert, "bert")}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const trainer::ModelConfig model = examined_model(family, precision);
      const auto data = open_doctor_data(directory, model);
      if (!data) return data.error();
      BlockComparison comparison(model, **data);
      for (const WorkerDevice& device : devices) {
        storage::Json one = storage::Json::object().set("device", device.text()).set("family", name);
        one.set("precision", precision == Precision::kFp32 ? "fp32" : "bf16");
        const auto figures = comparison.examine(device);
        list.append(figures ? figures_json(std::move(one), *figures)
                            : std::move(one.set("error", figures.error().line())));
      }
    }
  }
  return storage::Json::object().set("blocks", std::move(list));
}

}  // namespace everstep::launcher
