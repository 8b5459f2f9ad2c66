#include "tests/launcher/worker/paced_stage.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "trainer/model/wrapped_stage.h"

namespace everstep::launcher {

MakeStage paced_as_asked(MakeStage make_stage) {
  const char* variable = std::getenv("TEST_PACE_US");
  if (variable == nullptr) return make_stage;
  const auto rest = parse_number<int>(variable);
  EVERSTEP_CHECK(rest.has_value(), "TEST_PACE_US is not a number");
  return [rest = std::chrono::microseconds(*rest), make = std::move(make_stage)](const trainer::StageRequest& request) {
    return wrap_ops(make(request), [rest](trainer::StageOp op, Position, const std::function<void()>& run) {
      run();
      if (op != trainer::StageOp::kBackwardWeights) std::this_thread::sleep_for(rest);  // once per backward
    });
  };
}

}  // namespace everstep::launcher
