#include "launcher/worker/skipped_update.h"

#include "base/log_line.h"

namespace everstep::launcher {

std::string skipped_event(const trainer::StepReport& report, trainer::Accumulation accumulation) {
  return LogLine("update_skipped")
      .add("step", report.step)
      .add("in_a_row", report.skipped_in_a_row)
      .add("in_all", report.skipped_in_all)
      .add("reason", trainer::skip_reason(report.norm_limit, report.gradient_norm, accumulation))
      .text();
}

}  // namespace everstep::launcher
