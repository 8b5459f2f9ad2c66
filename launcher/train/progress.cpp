#include "launcher/train/progress.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/log_line.h"
#include "base/text.h"

namespace everstep::launcher {
namespace {

std::string two_digits(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

double seconds_left(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps) {
  return static_cast<double>(steps - report.step) * statistics.recent_seconds_per_step();
}

std::string rate_text(double rate) {
  std::array<char, 32> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), rate, std::chars_format::general, 4);
  EVERSTEP_CHECK(error == std::errc(), "a rate that is too long to write");
  return {buffer.data(), end};
}

std::string loss_text(double loss) { return std::isfinite(loss) ? fixed_text(loss, 4) : "not finite"; }

std::string duration_text(double seconds) {
  struct Unit {
    std::int64_t seconds;
    char name;
  };
  constexpr std::array<Unit, 4> kUnits{{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  const auto whole = static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 0.0, 1e12));
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    if (whole < kUnits[i].seconds) continue;
    return std::to_string(whole / kUnits[i].seconds) + kUnits[i].name +
           two_digits(whole % kUnits[i].seconds / kUnits[i + 1].seconds) + kUnits[i + 1].name;
  }
  return std::to_string(whole) + "s";
}

std::string speed_text(double tokens_per_s) {
  if (tokens_per_s < 1e3) return fixed_text(tokens_per_s, 0) + " tokens/s";
  if (tokens_per_s < 1e6) return fixed_text(tokens_per_s / 1e3, 1) + " ktokens/s";
  return fixed_text(tokens_per_s / 1e6, 2) + " Mtokens/s";
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

std::string skipped_event(const trainer::StepReport& report, trainer::Accumulation accumulation) {
  return LogLine("update_skipped")
      .add("step", report.step)
      .add("in_a_row", report.skipped_in_a_row)
      .add("in_all", report.skipped_in_all)
      .add("reason", trainer::skip_reason(report.norm_limit, report.gradient_norm, accumulation))
      .text();
}

}  // namespace everstep::launcher
