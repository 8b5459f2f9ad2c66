#include "tests/trainer/recovery/mixing_stage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "trainer/update/fixed_point.h"

namespace everstep::trainer {
namespace {

using Values = std::vector<float>;

constexpr std::uint64_t kBlockStride = 1 << 20;
constexpr std::uint64_t kTargets = 1 << 30;

// Multiples of 2^-8 in [-0.5, 0.5), which bf16 can hold: of a number below 256, or of a random one.
float coarse(std::uint64_t number) { return static_cast<float>(number) * 0x1p-8F - 0.5F; }
float coarse(const RandomStream& random, std::uint64_t index) { return coarse(random.below(index, 256)); }

float squashed(float value) { return value / (1 + std::abs(value)); }

class MixingStage final : public StageCompute {
 public:
  MixingStage(const StageRequest& request, std::set<std::int64_t> poisoned)
      : request_(request), poisoned_(std::move(poisoned)) {}

  void select_weights(WeightSet set) override { set_ = set; }

  Result<Output> forward(Position position, Buffer input) override {
    const auto random = stream_of(position);
    if (!random) return random.error();
    return pass(*random, input, &kept_[position.value]);
  }

  Result<Buffer> backward_input(Position position, Buffer output_gradient, int) override {
    const auto random = stream_of(position);
    if (!random) return random.error();
    const auto kept = kept_.extract(position.value);
    EVERSTEP_CHECK(!kept.empty(), "a backward without a forward");
    Values gradient = is_last() ? last_gradient(*random, kept.mapped().back()) : values_of(output_gradient);
    std::vector<Values>& owed = owed_[position.value];
    for (int block = request_.layout.end_block - 1; block >= request_.layout.first_block; --block) {
      const Values& input = kept.mapped()[static_cast<std::size_t>(block - request_.layout.first_block)];
      gradient = unmix(*random, block, input, gradient, owed.emplace_back());
    }
    const float infinity = std::numeric_limits<float>::infinity();
    if (poisoned_.contains(position.value)) {
      for (Values& of_weights : owed) std::ranges::fill(of_weights, infinity);
    }
    return is_first() ? Buffer{} : buffer_of(gradient);
  }

  Status backward_weights(Position position, int parity) override {
    const auto owed = owed_.extract(position.value);
    EVERSTEP_CHECK(!owed.empty(), "the second half of a backward without the first");
    int block = request_.layout.end_block;
    for (const Values& of_weights : owed.mapped()) add(parity, offset_of(--block), of_weights);
    return {};
  }

  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    const RandomStream random(request_.model.seed + 1, static_cast<std::uint64_t>(index));
    return pass(random, input, nullptr);
  }

  Noted<bool> take_overflow(int parity) override { return std::exchange(overflowed_[parity], false); }

 private:
  bool is_first() const { return request_.layout.first_block == 0; }
  bool is_last() const { return request_.layout.end_block == request_.model.blocks(); }

  // Other tokens, or the same ones at another position, are another stream.
  Result<RandomStream> stream_of(Position position) const {
    const auto minibatch = request_.data->training(position);
    if (!minibatch) return minibatch.error();
    auto key = static_cast<std::uint64_t>(position.value);
    for (const std::int64_t token : minibatch->tokens) key = key * 0x100000001B3 ^ static_cast<std::uint64_t>(token);
    return RandomStream(request_.model.seed, key);
  }

  std::size_t width() const { return request_.model.boundary_bytes() / sizeof(float); }

  // Keeps the input of every block, and the output of the last.
  Output pass(const RandomStream& random, const Buffer& input, std::vector<Values>* kept) const {
    Values values = is_first() ? targets(random, 1) : values_of(input);
    for (int block = request_.layout.first_block; block < request_.layout.end_block; ++block) {
      if (kept != nullptr) kept->push_back(values);
      values = mix(random, block, values);
    }
    if (kept != nullptr) kept->push_back(values);
    if (!is_last()) return {buffer_of(values), 0};
    double loss = 0;
    for (const float difference : last_gradient(random, values)) loss += double{difference} * difference;
    return {Buffer{}, loss};
  }

  Values targets(const RandomStream& random, std::uint64_t use) const {
    Values values(width());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = coarse(random, kTargets * (use + 1) + i);
    return values;
  }

  Values last_gradient(const RandomStream& random, const Values& output) const {
    Values gradient = targets(random, 2);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = output[i] - gradient[i];
    return gradient;
  }

  Values mix(const RandomStream& random, int block, const Values& input) const {
    Values output = input;
    for_each_weight(random, block, [&](std::size_t value, std::size_t next, float noise, float weight) {
      output[value] += weight * (input[next] + noise);
    });
    for (float& value : output) value = squashed(value);
    return output;
  }

  // The gradient of the input, and those of the weights.
  Values unmix(const RandomStream& random, int block, const Values& input, const Values& gradient,
               Values& of_weights) const {
    Values result = gradient;
    for_each_weight(random, block, [&](std::size_t value, std::size_t next, float noise, float weight) {
      const float from_above = gradient[value];
      result[next] += weight * from_above;
      of_weights.push_back(from_above * (input[next] + noise) / static_cast<float>(request_.window));
    });
    for (float& value : result) value = squashed(value);
    return result;
  }

  // Each weight leads from one value to the next. The weights of a block stand side by side. One number of the
  // generator serves them all, or it would take longer than everything else here.
  void for_each_weight(const RandomStream& random, int block, auto visit) const {
    std::uint64_t bits = random.bits(kBlockStride * static_cast<std::uint64_t>(block + 1));
    const std::int64_t offset = offset_of(block);
    const std::int64_t elements = elements_of(block);
    const std::size_t values = width();
    std::size_t value = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      bits = bits * 0x5851F42D4C957F2D + 1;
      const std::size_t next = value + 1 == values ? 0 : value + 1;
      visit(value, next, coarse(bits >> 56), weight_at(offset + i));
      value = next;
    }
  }

  std::int64_t offset_of(int block) const {
    const auto& entries = request_.layout.entries;
    return std::ranges::find(entries, block, &StageLayout::Entry::block)->offset;
  }

  std::int64_t elements_of(int block) const {
    std::int64_t elements = 0;
    for (const StageLayout::Entry& entry : request_.layout.entries) {
      if (entry.block == block) elements += entry.parameter.elements();
    }
    return elements;
  }

  float weight_at(std::int64_t offset) const {
    const ChunkMemory& memory = request_.memory;
    const Buffer& weights = set_ == WeightSet::kWeights ? memory.weights : memory.provisional;
    if (request_.model.precision == Precision::kFp32) return weights.as<float>()[offset];
    return std::bit_cast<float>(std::uint32_t{weights.as<std::uint16_t>()[offset]} << 16);
  }

  void add(int parity, std::int64_t offset, const Values& gradients) {
    const Buffer& sums = request_.memory.gradients[parity];
    if (request_.accumulation == Accumulation::kFloat) {
      const auto target = sums.as<float>().subspan(offset);
      for (std::size_t i = 0; i < gradients.size(); ++i) target[i] += gradients[i];
    } else if (!add_fixed_point(sums.as<std::int64_t>().subspan(offset, gradients.size()), gradients,
                                fixed_point_limit(request_.window))) {
      overflowed_[parity] = true;
    }
  }

  Values values_of(const Buffer& buffer) const {
    const auto values = buffer.as<const float>();
    return {values.begin(), values.end()};
  }

  static Buffer buffer_of(const Values& values) {
    Buffer buffer = allocate_scratch(values.size() * sizeof(float));
    std::copy(values.begin(), values.end(), buffer.as<float>().begin());
    return buffer;
  }

  StageRequest request_;
  std::set<std::int64_t> poisoned_;
  std::map<std::int64_t, std::vector<Values>> kept_;  // by position
  std::map<std::int64_t, std::vector<Values>> owed_;  // the same: gradients of weights, by block from the last one
  std::array<bool, 2> overflowed_{};
  WeightSet set_ = WeightSet::kWeights;
};

class NoMinibatches final : public DataSource {
 public:
  Result<Minibatch> training(Position) const override { return Minibatch{}; }
  Result<Minibatch> validation(std::int64_t) const override { return Minibatch{}; }
  std::int64_t validation_minibatches() const override { return 8; }
};

// The two copies of the tied parameter start equal.
void fill(const ModelConfig& model, const StageLayout& layout, auto put) {
  for (const StageLayout::Entry& entry : layout.entries) {
    const int stream = entry.parameter.tied ? -1 : entry.block * 100 + entry.index;
    const RandomStream random(model.seed + 2, static_cast<std::uint64_t>(stream));
    for (std::int64_t i = 0; i < entry.parameter.elements(); ++i) {
      put(entry.offset + i, coarse(random, static_cast<std::uint64_t>(i)));
    }
  }
}

}  // namespace

std::unique_ptr<StageCompute> make_mixing_stage(const StageRequest& request) {
  return std::make_unique<MixingStage>(request, std::set<std::int64_t>());
}

std::unique_ptr<StageCompute> make_poisoned_stage(const StageRequest& request, std::set<std::int64_t> positions) {
  return std::make_unique<MixingStage>(request, std::move(positions));
}

ModelConfig mixing_model(int layers) {
  ModelConfig model;
  model.shape = {"mixing", scheduler::ModelFamily::kGpt, layers, 2, 1, 2, 2};
  model.minibatch = 1;
  model.seed = 5;
  return model;
}

void add_mixing_hooks(const ModelConfig& model, TrainHooks& hooks) {
  hooks.make_stage = make_mixing_stage;
  hooks.initialise_weights = [model](const StageLayout& layout, const Buffer& weights) {
    fill(model, layout, [&](std::int64_t at, float value) {
      if (model.precision == Precision::kFp32) {
        weights.as<float>()[at] = value;
      } else {
        weights.as<std::uint16_t>()[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      }
    });
  };
  hooks.initialise_master = [model](const StageLayout& layout, const Buffer& master) {
    fill(model, layout, [&](std::int64_t at, float value) { master.as<float>()[at] = value; });
  };
}

std::unique_ptr<DataSource> make_no_minibatches() { return std::make_unique<NoMinibatches>(); }

}  // namespace everstep::trainer
