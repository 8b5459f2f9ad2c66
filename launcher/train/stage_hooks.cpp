#include "launcher/train/stage_hooks.h"

#include "launcher/train/train_plan.h"
#include "trainer/emulated/emulated_stage.h"
#include "trainer/torch/torch_stage.h"
#include "trainer/ucx/payload_checksum.h"

namespace everstep::launcher {
namespace {

void emulate(const Emulation& emulation, const scheduler::Plan& plan, trainer::TrainHooks& hooks) {
  const trainer::EmulatedTimes times = emulated_times(emulation, plan);
  hooks.make_stage = [times](const trainer::StageRequest& stage) { return make_emulated_stage(stage, times); };
}

void compute(const trainer::ModelConfig& model, trainer::TrainHooks& hooks) {
  hooks.make_stage = trainer::make_torch_stage;
  hooks.initialise_weights = [&model](const trainer::StageLayout& layout, const trainer::Buffer& weights) {
    trainer::initialise_weights(model, layout, weights);
  };
  hooks.initialise_master = [&model](const trainer::StageLayout& layout, const trainer::Buffer& master) {
    trainer::initialise_master(model, layout, master);
  };
}

}  // namespace

void add_stage_hooks(const TrainRequest& request, const scheduler::Plan& plan, trainer::TrainHooks& hooks) {
  hooks.hash_weights = trainer::payload_checksum;
  if (request.emulation) {
    emulate(*request.emulation, plan, hooks);
  } else {
    compute(request.options.model, hooks);
  }
}

Result<std::unique_ptr<trainer::DataSource>> open_training_data(const TrainRequest& request) {
  if (!request.data) return trainer::make_emulated_data();
  return open_data(*request.data, request.options.model);
}

}  // namespace everstep::launcher
