#include "trainer/model/wrapped_stage.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {
namespace {

class WrappedStage final : public StageCompute {
 public:
  WrappedStage(std::unique_ptr<StageCompute> stage, AroundOp around)
      : stage_(std::move(stage)), around_(std::move(around)) {}

  Result<Output> forward(Position position, Buffer input) override {
    return wrapped<Output>(StageOp::kForward, position, [&] { return stage_->forward(position, std::move(input)); });
  }
  Result<Buffer> backward(Position position, Buffer output_gradient, int parity) override {
    return wrapped<Buffer>(StageOp::kBackward, position,
                           [&] { return stage_->backward(position, std::move(output_gradient), parity); });
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return wrapped<Output>(StageOp::kEvaluate, {index}, [&] { return stage_->evaluate(index, std::move(input)); });
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  template <typename T, typename Run>
  Result<T> wrapped(StageOp op, Position position, const Run& run) {
    std::optional<Result<T>> result;
    around_(op, position, [&] { result = run(); });
    EVERSTEP_CHECK(result.has_value(), "what is around an op runs it");
    return *std::move(result);
  }

  std::unique_ptr<StageCompute> stage_;
  AroundOp around_;
};

}  // namespace

std::unique_ptr<StageCompute> wrap_ops(std::unique_ptr<StageCompute> stage, AroundOp around) {
  return std::make_unique<WrappedStage>(std::move(stage), std::move(around));
}

}  // namespace everstep::trainer
