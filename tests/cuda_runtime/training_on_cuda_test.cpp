// Whole training runs with LibTorch's GPU code, one thread and one GPU per worker: nobody waits inside a window, and
// nothing is allocated once it is in its rhythm.
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_runtime/cuda_runs.h"
#include "tests/trainer/loop/training_support.h"
#include "trainer/torch/device_buffers.h"

namespace everstep::null_cuda {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;
using testing::HasSubstr;

constexpr int kWorkers = 4;

// Activations have 2 MiB and more, as in real models: LibTorch's allocator keeps what is below 1 MiB elsewhere. Of
// BERT's minibatches some have short samples and some have none, which are other sizes and other kernels: four samples
// are few enough for both to come early.
TrainOptions training(ModelFamily family, Precision precision, Accumulation accumulation) {
  TrainOptions options = under_plan(tiny_training(family, 6), {ScheduleKind::kAmdp, kWorkers, 1, 8});
  options.model.shape.hidden = 512;
  options.model.shape.sequence = 512;
  options.model.minibatch = 4;
  options.model.precision = precision;
  options.accumulation = accumulation;
  options.anomalies.stops = true;
  options.compare_replicas_every = 1;
  options.steps = 8;
  return options;
}

// With the data that users have: BERT's minibatches differ in how much is to be predicted.
UseOfGpus use_of_run(const TrainOptions& options, const RunChanges& changes = {}) {
  UseOfGpus use;
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data, counting_use(on_gpus(changes), kWorkers, use));
  EXPECT_TRUE(runs.ok()) << runs.error().line();
  for (const auto& worker : use) EXPECT_EQ(std::ssize(worker), options.steps);
  return use;
}

template <typename Number>
std::string by_window(const std::vector<WindowUse>& windows, const Number& number) {
  std::string text;
  for (const WindowUse& window : windows) {
    text += " " + std::to_string(number(window.inside) + number(window.at_update));
  }
  return text;
}

struct Steady : testing::TestWithParam<std::tuple<ModelFamily, Precision, Accumulation, Pace>> {};

// A GPU that is late still reads what it copies out, so that memory may be missing later, too: there only waits count.
TEST_P(Steady, WaitsOnceAWindowAndAllocatesNothing) {
  const auto [family, precision, accumulation, pace] = GetParam();
  set_pace(pace);
  const UseOfGpus use = use_of_run(training(family, precision, accumulation));
  set_pace(Pace::kAtOnce);
  EXPECT_EQ(wrong_waits(use), "");
  if (pace == Pace::kAtOnce) {
    EXPECT_EQ(wrong_allocations(use), "");
  }
  const WindowUse& last = use.front().back();
  EXPECT_GT(last.inside.launches, 100);
  std::cout << "per window, worker 0: " << last.inside.launches + last.at_update.launches << " launches, "
            << last.inside.waits << " waits inside, " << last.at_update.waits << " at the update; cudaMalloc by window:"
            << by_window(use.front(), [](const Counts& counts) { return counts.allocations; }) << "; cudaHostAlloc:"
            << by_window(use.front(), [](const Counts& counts) { return counts.pinned_allocations; }) << '\n';
}

INSTANTIATE_TEST_SUITE_P(Cuda, Steady,
                         testing::Combine(testing::Values(ModelFamily::kGpt, ModelFamily::kBert),
                                          testing::Values(Precision::kFp32, Precision::kBf16),
                                          testing::Values(Accumulation::kFloat, Accumulation::kFixedPoint),
                                          testing::Values(Pace::kAtOnce, Pace::kWhenWaitedFor)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == ModelFamily::kGpt ? "Gpt" : "Bert") +
                                  (std::get<1>(test.param) == Precision::kFp32 ? "Fp32" : "Bf16") +
                                  (std::get<2>(test.param) == Accumulation::kFloat ? "Float" : "FixedPoint") +
                                  (std::get<3>(test.param) == Pace::kAtOnce ? "AtOnce" : "WhenWaitedFor");
                         });

// A stage that does something more with what a forward made.
class MeddlingStage final : public StageCompute {
 public:
  using Meddle = std::function<void(const Buffer& output)>;

  MeddlingStage(std::unique_ptr<StageCompute> stage, Meddle meddle)
      : stage_(std::move(stage)), meddle_(std::move(meddle)) {}

  void select_weights(WeightSet set) override { stage_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    auto output = stage_->forward(position, std::move(input));
    if (output && !output->tensor.empty()) meddle_(output->tensor);
    return output;
  }
  Result<Buffer> backward(Position position, Buffer output_gradient, int parity) override {
    return stage_->backward(position, std::move(output_gradient), parity);
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return stage_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  std::unique_ptr<StageCompute> stage_;
  Meddle meddle_;
};

// A run in which worker 0 does it after every forward.
UseOfGpus use_with(const MeddlingStage::Meddle& meddle) {
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    if (worker != 0) return;
    hooks.make_stage = [make = hooks.make_stage, &meddle](const StageRequest& request) {
      return std::make_unique<MeddlingStage>(make(request), meddle);
    };
  };
  return use_of_run(training(ModelFamily::kGpt, Precision::kFp32, Accumulation::kFloat), changes);
}

at::Tensor tensor_of(const Buffer& output) {
  return to_tensor(output, {static_cast<std::int64_t>(output.size)}, at::kByte);
}

TEST(Unsteady, IsAStageThatReadsANumberBack) {
  EXPECT_THAT(wrong_waits(use_with([](const Buffer& output) { (void)tensor_of(output)[0].item<std::uint8_t>(); })),
              HasSubstr("worker 0, window 1: "));
}

TEST(Unsteady, IsAStageThatWaitsForItsStream) {
  EXPECT_THAT(wrong_waits(use_with([](const Buffer&) { c10::cuda::getCurrentCUDAStream().synchronize(); })),
              HasSubstr("cudaStreamSynchronize"));
}

TEST(Unsteady, IsAStageThatCopiesToMemoryThatIsNotPinned) {
  EXPECT_THAT(wrong_waits(use_with([](const Buffer& output) {
                const at::Tensor from = tensor_of(output);
                at::Tensor pageable = at::empty_like(from, at::kCPU);
                pageable.copy_(from, true);
              })),
              HasSubstr("not pinned"));
}

TEST(Unsteady, IsAStageThatAllocatesAnew) {
  std::vector<at::Tensor> kept;
  EXPECT_THAT(
      wrong_allocations(use_with([&](const Buffer& output) { kept.push_back(tensor_of(output).repeat({64})); })),
      HasSubstr("worker 0, window 5: "));
}

TEST(Unsteady, IsAStageThatGivesItsMemoryBack) {
  const UseOfGpus use = use_with([](const Buffer&) { c10::cuda::CUDACachingAllocator::emptyCache(); });
  EXPECT_THAT(wrong_waits(use), HasSubstr("worker 0, window 1: "));
  EXPECT_THAT(wrong_allocations(use), HasSubstr("cudaMalloc"));
}

}  // namespace
}  // namespace everstep::null_cuda
