#include "trainer/model/wrapped_stage.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {
namespace {

class WrappedStage final : public StageCompute {
 public:
  WrappedStage(std::unique_ptr<StageCompute> stage, AroundOp around)
      : stage_(std::move(stage)), around_(std::move(around)) {}

  void select_weights(WeightSet set) override { stage_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return wrapped(StageOp::kForward, position, [&] { return stage_->forward(position, std::move(input)); });
  }
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    return wrapped(StageOp::kBackwardInput, position,
                   [&] { return stage_->backward_input(position, std::move(output_gradient), parity); });
  }
  Status backward_weights(Position position, int parity) override {
    return wrapped(StageOp::kBackwardWeights, position, [&] { return stage_->backward_weights(position, parity); });
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return wrapped(StageOp::kEvaluate, {index}, [&] { return stage_->evaluate(index, std::move(input)); });
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  template <typename Run>
  std::invoke_result_t<Run> wrapped(StageOp op, Position position, const Run& run) {
    std::optional<std::invoke_result_t<Run>> result;
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
