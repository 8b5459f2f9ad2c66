// Makes the worker program that it is part of do what the tests' variables ask for.
#include <utility>

#include "tests/launcher/worker/paced_stage.h"
#include "tests/launcher/worker/spoilt_stage.h"
#include "tests/launcher/worker/told_weights.h"

namespace everstep::launcher {
namespace {

[[maybe_unused]] const bool kAreChanged = [] {
  change_stages(
      [](MakeStage make) { return telling_weights_as_asked(paced_as_asked(spoilt_as_asked(std::move(make)))); });
  return true;
}();

}  // namespace
}  // namespace everstep::launcher
