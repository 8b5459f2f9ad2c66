#include "launcher/worker/doctor/measured_model.h"

namespace everstep::launcher {

trainer::ModelConfig measured_model(const DeviceName& device) {
  const bool is_fast = device.kind == "cuda";
  trainer::ModelConfig model;
  model.shape = scheduler::find_model(is_fast ? "gpt2-small" : "gpt2-tiny").value();
  if (is_fast) {
    model.precision = trainer::Precision::kBf16;
  } else {
    model.shape.layers = 4;
    model.minibatch = 2;
  }
  return model;
}

}  // namespace everstep::launcher
