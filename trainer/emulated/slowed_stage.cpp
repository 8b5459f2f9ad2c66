#include "trainer/emulated/slowed_stage.h"

#include <chrono>
#include <type_traits>
#include <utility>

#include "trainer/emulated/wait_exactly.h"

namespace everstep::trainer {
namespace {

class SlowedStage final : public StageCompute {
 public:
  SlowedStage(std::unique_ptr<StageCompute> stage, double factor) : stage_(std::move(stage)), factor_(factor) {}

  Result<Output> forward(Position position, Buffer input) override {
    return slowly([&] { return stage_->forward(position, std::move(input)); });
  }
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    return slowly([&] { return stage_->backward_input(position, std::move(output_gradient), parity); });
  }
  Status backward_weights(Position position, int parity) override {
    return slowly([&] { return stage_->backward_weights(position, parity); });
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return slowly([&] { return stage_->evaluate(index, std::move(input)); });
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  template <typename Function>
  std::invoke_result_t<Function> slowly(Function function) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = function();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    wait_exactly(std::chrono::duration_cast<std::chrono::nanoseconds>(took * (factor_ - 1)));
    return result;
  }

  std::unique_ptr<StageCompute> stage_;
  double factor_;
};

}  // namespace

std::unique_ptr<StageCompute> make_slowed_stage(std::unique_ptr<StageCompute> stage, double factor) {
  return std::make_unique<SlowedStage>(std::move(stage), factor);
}

}  // namespace everstep::trainer
