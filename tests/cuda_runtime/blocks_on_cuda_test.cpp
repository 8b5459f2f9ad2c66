// Each block with LibTorch's GPU code: what it launches, that it waits for nothing, and that LibTorch's own checks
// accept what it is called with.
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_runtime/cuda_runs.h"
#include "tests/trainer/torch/test_model.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::null_cuda {
namespace {

using namespace everstep::trainer;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

constexpr double kMib = 1 << 20;

using Launches = std::map<std::string, std::int64_t>;

struct Direction {
  Counts counts;
  Launches launches;
};

struct BlockUse {
  std::string failure;
  Direction forward;
  Direction backward;
};

// One block as a stage of its own, on the first GPU.
class OneBlock {
 public:
  OneBlock(const ModelConfig& config, int number, Accumulation accumulation, bool padded)
      : config_(config), data_(config, padded), memory_(make_device_memory("cuda", 0)) {
    StageRequest request{config, layout_of(config, number, number + 1), {}, accumulation, 4, &data_, memory_.get()};
    const auto elements = static_cast<std::size_t>(request.layout.elements);
    const std::size_t sum_bytes = elements * (accumulation == Accumulation::kFixedPoint ? 8 : 4);
    request.memory.weights = memory_->allocate_zeroed(elements * config.weight_bytes());
    request.memory.gradients = {memory_->allocate_zeroed(sum_bytes), memory_->allocate_zeroed(sum_bytes)};
    has_input_ = number > 0;
    has_output_ = number < config.blocks() - 1;
    stage_ = make_torch_stage(request);
  }

  BlockUse run(std::int64_t position) {
    BlockUse use;
    begin();
    const auto output = stage_->forward(Position{position}, has_input_ ? boundary() : Buffer{});
    use.forward = end();
    if (!output) return {output.error().line(), use.forward, {}};
    begin();
    const auto gradient = stage_->backward(Position{position}, has_output_ ? boundary() : Buffer{}, 0);
    use.backward = end();
    if (!gradient) use.failure = gradient.error().line();
    return use;
  }

  // From before a forward to its backward's end.
  std::int64_t needed_bytes() {
    const auto use = [] { return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0]; };
    run(0);
    const std::int64_t before = use().current;
    c10::cuda::CUDACachingAllocator::resetPeakStats(0);
    EXPECT_EQ(run(1).failure, "");
    return use().peak - before;
  }

 private:
  Buffer boundary() { return memory_->allocate_scratch(config_.boundary_bytes()); }

  void begin() {
    take_launches();
    before_ = counts_of_this_thread();
  }

  Direction end() const {
    const Counts now = counts_of_this_thread();
    return {{now.launches - before_.launches, now.waits - before_.waits, now.allocations - before_.allocations,
             now.pinned_allocations - before_.pinned_allocations},
            take_launches()};
  }

  ModelConfig config_;
  RandomSamples data_;
  std::unique_ptr<DeviceMemory> memory_;
  bool has_input_ = false;
  bool has_output_ = false;
  std::unique_ptr<StageCompute> stage_;
  Counts before_;
};

ModelConfig medium(bool bert, Precision precision) {
  ModelConfig config = bert ? small_bert() : small_gpt();
  config.shape.hidden = 256;
  config.shape.sequence = 64;
  config.precision = precision;
  config.dropout = 0.1;
  config.next_sentence = bert;
  return config;
}

const char* name_of(Precision precision) { return precision == Precision::kBf16 ? "bf16" : "fp32"; }
const char* name_of(Accumulation accumulation) {
  return accumulation == Accumulation::kFloat ? "float" : "fixed point";
}

std::string name_of_block(const ModelConfig& config, int number) {
  if (number == 0) return "embedding";
  return number == config.blocks() - 1 ? "head" : "block";
}

struct BlockOnCuda : testing::TestWithParam<std::tuple<bool, Precision, Accumulation>> {
  BlockOnCuda() { prepare_gpus(); }
};

INSTANTIATE_TEST_SUITE_P(Cuda, BlockOnCuda,
                         testing::Combine(testing::Bool(), testing::Values(Precision::kFp32, Precision::kBf16),
                                          testing::Values(Accumulation::kFloat, Accumulation::kFixedPoint)));

TEST_P(BlockOnCuda, LaunchesWithoutAWaitOrAnAllocation) {
  const auto [bert, precision, accumulation] = GetParam();
  const ModelConfig config = medium(bert, precision);
  for (const int number : {0, 1, config.blocks() - 1}) {
    OneBlock block(config, number, accumulation, true);
    block.run(0);
    const BlockUse use = block.run(0);
    ASSERT_EQ(use.failure, "");
    std::printf("%s, %s, %s sums, %-9s: %3lld launches forward, %3lld backward\n", bert ? "bert" : "gpt",
                name_of(precision), name_of(accumulation), name_of_block(config, number).c_str(),
                static_cast<long long>(use.forward.counts.launches),
                static_cast<long long>(use.backward.counts.launches));
    for (const Direction& direction : {use.forward, use.backward}) {
      EXPECT_GT(direction.counts.launches, 0) << number;
      EXPECT_EQ(direction.counts.waits, 0) << number << ": " << last_wait();
      EXPECT_EQ(direction.counts.allocations, 0) << number;
    }
  }
}

// As the planner wants to know it: the most of both directions together.
TEST_P(BlockOnCuda, NeedsTheMemoryThatTheProfilePredicts) {
  const auto [bert, precision, accumulation] = GetParam();
  constexpr int kReceivesAhead = 4;           // the loop's, not the block's
  constexpr double kSumScratch = 108 * kMib;  // LibTorch's for sums over columns, on this GPU whatever the model
  for (const bool recompute : {false, true}) {
    ModelConfig config = medium(bert, precision);
    config.shape = {"large", config.shape.family, 2, 1024, 16, 512, 20000};
    config.minibatch = 8;
    config.recompute = recompute;
    const auto profile = profile_of(config, accumulation, 1e14);
    for (const int number : {0, 1, config.blocks() - 1}) {
      const scheduler::BlockProfile& block = profile.blocks[static_cast<std::size_t>(number)];
      const auto predicted = static_cast<double>(block.activation_bytes + block.working_bytes -
                                                 kReceivesAhead * static_cast<std::int64_t>(config.boundary_bytes()));
      const auto needed = static_cast<double>(OneBlock(config, number, accumulation, false).needed_bytes());
      std::printf("%s, %s, %s sums, %-9s%s: planned %.1f MiB, needed %.1f\n", bert ? "bert" : "gpt", name_of(precision),
                  name_of(accumulation), name_of_block(config, number).c_str(), recompute ? ", recomputed" : "",
                  predicted / kMib, needed / kMib);
      EXPECT_GE(needed, 0.85 * predicted) << number << (recompute ? ", recomputed" : "");
      EXPECT_LE(needed, 1.15 * predicted + kSumScratch) << number << (recompute ? ", recomputed" : "");
    }
  }
}

// By the kernels that are really launched.
TEST(AttentionOnCuda, IsFlashInBf16WithoutAMaskAndMemoryEfficientElse) {
  prepare_gpus();
  for (const bool bert : {false, true}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      for (const bool padded : {false, true}) {
        const BlockUse use = OneBlock(medium(bert, precision), 1, Accumulation::kFloat, padded).run(0);
        ASSERT_EQ(use.failure, "");
        const bool is_flash = precision == Precision::kBf16 && !(bert && padded);
        EXPECT_THAT(use.forward.launches, Contains(Key(HasSubstr(is_flash ? "flash_fwd" : "fmha_cutlassF"))));
        EXPECT_THAT(use.backward.launches, Contains(Key(HasSubstr(is_flash ? "flash_bwd" : "fmha_cutlassB"))));
        EXPECT_THAT(use.forward.launches, Not(Contains(Key(HasSubstr(is_flash ? "fmha_cutlass" : "flash_fwd")))));
      }
    }
  }
}

// LibTorch's checks are the real ones: what its kernels cannot do they refuse.
TEST(AttentionOnCuda, IsRefusedWhereLibTorchHasNoKernel) {
  prepare_gpus();
  const at::Tensor floats = at::zeros({2, 4, 16, 64}, at::TensorOptions(at::kFloat).device(at::kCUDA));
  EXPECT_THROW(at::_scaled_dot_product_flash_attention(floats, floats, floats, 0.0, true, false), c10::Error);
  const at::Tensor wide = at::zeros({2, 4, 16, 512}, at::TensorOptions(at::kBFloat16).device(at::kCUDA));
  EXPECT_THROW(at::_scaled_dot_product_flash_attention(wide, wide, wide, 0.0, true, false), c10::Error);
}

// Sizes that no published model has, too.
TEST(BlocksOnCuda, AreAcceptedInEverySize) {
  prepare_gpus();
  std::string refused;
  for (const bool bert : {false, true}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      for (const bool padded : {false, true}) {
        for (const int head : {1, 4, 6, 8, 12, 16, 40, 64, 72, 80, 128, 200, 256, 264}) {
          for (const int length : {3, 7, 16, 33, 64}) {
            ModelConfig config = medium(bert, precision);
            config.shape.heads = 3;
            config.shape.hidden = config.shape.heads * head;
            config.shape.sequence = length;
            for (const int number : {0, 1, config.blocks() - 1}) {
              const std::string failure = OneBlock(config, number, Accumulation::kFloat, padded).run(0).failure;
              if (failure.empty()) continue;
              refused += std::string(bert ? "bert " : "gpt ") + name_of(precision) + (padded ? " padded" : "") +
                         " head " + std::to_string(head) + " length " + std::to_string(length) + ": " + failure + "\n";
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace everstep::null_cuda
