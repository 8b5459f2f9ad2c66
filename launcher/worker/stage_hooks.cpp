#include "launcher/worker/stage_hooks.h"

#include <utility>

#include "launcher/job/train_plan.h"
#include "trainer/emulated/emulated_stage.h"
#include "trainer/torch/torch_stage.h"
#include "trainer/xxhash/byte_hash.h"

namespace everstep::launcher {
namespace {

std::function<MakeStage(MakeStage)>& change_of_stages() {
  static std::function<MakeStage(MakeStage)> change;
  return change;
}

void emulate(const TrainRequest& request, const scheduler::Plan& plan, trainer::TrainHooks& hooks) {
  const Emulation& emulation = *request.emulation;
  if (emulation.of_model) {
    hooks.make_stage = [emulation, profile = train_profile(request)](const trainer::StageRequest& stage) {
      const trainer::StageLayout& layout = stage.layout;
      return make_emulated_stage(stage, emulated_part(emulation, profile, layout.first_block, layout.end_block));
    };
    return;
  }
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

void change_stages(std::function<MakeStage(MakeStage)> change) { change_of_stages() = std::move(change); }

void add_stage_hooks(const TrainRequest& request, const scheduler::Plan& plan, trainer::TrainHooks& hooks) {
  hooks.hash_weights = trainer::byte_hash;
  if (request.emulation) {
    emulate(request, plan, hooks);
  } else {
    compute(request.options.model, hooks);
  }
  if (const auto& change = change_of_stages()) hooks.make_stage = change(std::move(hooks.make_stage));
}

Result<std::unique_ptr<trainer::DataSource>> open_training_data(const TrainRequest& request) {
  if (!request.data) return trainer::make_emulated_data();
  return open_data(*request.data, request.options.model);
}

}  // namespace everstep::launcher
