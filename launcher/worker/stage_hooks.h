#pragma once

#include <functional>
#include <memory>

#include "launcher/job/train_request.h"
#include "scheduler/plan.h"
#include "trainer/loop/train_loop.h"
#include "trainer/model/data_source.h"

namespace everstep::launcher {

using MakeStage = std::function<std::unique_ptr<trainer::StageCompute>(const trainer::StageRequest&)>;

// Changes all stages that this process makes from now on. For worker programs of tests, which make faults happen; the
// product has none.
void change_stages(std::function<MakeStage(MakeStage)> change);

// How stages of this plan are computed, or emulated. The request must outlive the hooks.
void add_stage_hooks(const TrainRequest& request, const scheduler::Plan& plan, trainer::TrainHooks& hooks);

// What the request trains on; an emulated run has no real data.
Result<std::unique_ptr<trainer::DataSource>> open_training_data(const TrainRequest& request);

}  // namespace everstep::launcher
