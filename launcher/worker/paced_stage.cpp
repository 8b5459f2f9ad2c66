#include "launcher/worker/paced_stage.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace everstep::launcher {
namespace {

class PacedStage final : public trainer::StageCompute {
 public:
  PacedStage(std::chrono::microseconds rest, std::unique_ptr<trainer::StageCompute> stage)
      : rest_(rest), stage_(std::move(stage)) {}

  Result<Output> forward(Position position, trainer::Buffer input) override {
    return rested(stage_->forward(position, std::move(input)));
  }
  // Once per backward.
  Result<trainer::Buffer> backward_input(Position position, trainer::Buffer output_gradient, int parity) override {
    return rested(stage_->backward_input(position, std::move(output_gradient), parity));
  }
  Status backward_weights(Position position, int parity) override { return stage_->backward_weights(position, parity); }
  Result<Output> evaluate(std::int64_t index, trainer::Buffer input) override {
    return rested(stage_->evaluate(index, std::move(input)));
  }
  trainer::Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  template <typename T>
  T rested(T result) const {
    std::this_thread::sleep_for(rest_);
    return result;
  }

  std::chrono::microseconds rest_;
  std::unique_ptr<trainer::StageCompute> stage_;
};

}  // namespace

MakeStage paced_as_asked(MakeStage make_stage) {
  const char* variable = std::getenv("TEST_PACE_US");
  if (variable == nullptr) return make_stage;
  const auto rest = parse_number<int>(variable);
  EVERSTEP_CHECK(rest.has_value(), "TEST_PACE_US is not a number");
  return [rest = std::chrono::microseconds(*rest), make = std::move(make_stage)](const trainer::StageRequest& request) {
    return std::unique_ptr<trainer::StageCompute>(std::make_unique<PacedStage>(rest, make(request)));
  };
}

}  // namespace everstep::launcher
