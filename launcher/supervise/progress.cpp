#include "launcher/supervise/progress.h"

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/quantities.h"

namespace everstep::launcher {

double seconds_left(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps) {
  return static_cast<double>(steps - report.step) * statistics.recent_seconds_per_step();
}

std::string progress_text(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                          std::size_t columns) {
  std::string text = "step " + std::to_string(report.step) + "/" + std::to_string(steps);
  text += "  loss " + loss_text(report.loss) + "  " + speed_text(statistics.last_tokens_per_s());
  text += "  busy " + fixed_text(report.busy, 2);
  if (report.step < steps) text += "  " + duration_text(seconds_left(report, statistics, steps)) + " left";
  return text.substr(0, columns);
}

std::string progress_event(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                           std::optional<Generation> generation, std::optional<double> validation_loss) {
  LogLine event("step");
  event.add("step", report.step).add("steps", steps);
  if (generation) event.add("generation", generation->value);
  event.add("loss", loss_text(report.loss));
  if (validation_loss) event.add("validation_loss", loss_text(*validation_loss));
  event.add("learning_rate", rate_text(report.learning_rate)).add("gradient_norm", loss_text(report.gradient_norm));
  if (report.skipped_in_all > 0) event.add("skipped", report.skipped_in_all);
  return event.add("tokens_per_s", fixed_text(statistics.last_tokens_per_s(), 0))
      .add("busy", fixed_text(report.busy, 3))
      .add("seconds_left", fixed_text(seconds_left(report, statistics, steps), 0))
      .text();
}

}  // namespace everstep::launcher
