#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "launcher/train/run_statistics.h"
#include "trainer/train_loop.h"

namespace everstep::launcher {

// "step 120/500  loss 2.4153  10.3 ktokens/s  busy 0.94  3m05s left", cut to so many columns.
std::string progress_text(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                          std::size_t columns);

// The same as an event for a log, with the last loss on the validation split if there is one.
std::string progress_event(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                           std::optional<Generation> generation = {}, std::optional<double> validation_loss = {});

// How long the steps that are left take at the speed of the last few.
double seconds_left(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps);

// `event=update_skipped step=41 in_a_row=3 in_all=7 reason="the gradient was not finite"`
std::string skipped_event(const trainer::StepReport& report, trainer::Accumulation accumulation);

// "2.4153", or that it is not finite.
std::string loss_text(double loss);

// A learning rate, to four digits: "0.002193".
std::string rate_text(double rate);

// "42s", "3m05s", "2h07m", "5d03h".
std::string duration_text(double seconds);

// "812 tokens/s", "10.3 ktokens/s", "1.25 Mtokens/s".
std::string speed_text(double tokens_per_s);

}  // namespace everstep::launcher
