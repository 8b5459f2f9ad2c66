#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "launcher/supervise/run_statistics.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// "step 120/500  loss 2.4153  10.3 ktokens/s  busy 0.94  3m05s left", cut to so many columns.
std::string progress_text(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                          std::size_t columns);

// The same as an event for a log, with the last loss on the validation split if there is one.
std::string progress_event(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                           std::optional<Generation> generation = {}, std::optional<double> validation_loss = {});

// How long the steps that are left take at the speed of the last few.
double seconds_left(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps);

}  // namespace everstep::launcher
