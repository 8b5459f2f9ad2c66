#pragma once

#include <string>

#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// `event=update_skipped step=41 in_a_row=3 in_all=7 reason="the gradient was not finite"`
std::string skipped_event(const trainer::StepReport& report, trainer::Accumulation accumulation);

}  // namespace everstep::launcher
