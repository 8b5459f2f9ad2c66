#include "launcher/supervise/run_reporter.h"

#include <utility>

#include "base/log_line.h"
#include "launcher/supervise/progress.h"
#include "launcher/supervise/run_summary.h"
#include "launcher/worker/skipped_update.h"

namespace everstep::launcher {
namespace {

constexpr Tick kBetweenLines = kTicksPerSecond / 10;
constexpr Tick kBetweenEvents = 5 * kTicksPerSecond;

}  // namespace

RunReporter::RunReporter(Run run, Streams& streams)
    : run_(std::move(run)),
      streams_(streams),
      metrics_(run_.metrics_path, std::ios::app),
      statistics_(0, run_.tokens_per_step),
      line_(streams) {}

void RunReporter::on_start(Tick now) {
  statistics_ = RunStatistics(now, run_.tokens_per_step);
  shown_at_ = now;
}

void RunReporter::on_step(const trainer::StepReport& report, std::optional<Generation> generation) {
  write_metrics(std::nullopt);
  statistics_.add(report);
  last_ = report;
  generation_ = generation;
  is_written_ = false;
  if (report.skipped) note(skipped_event(report, run_.accumulation));
  const bool is_validated =
      run_.evaluate_every > 0 && (report.step % run_.evaluate_every == 0 || report.step == run_.steps);
  if (!is_validated) write_metrics(std::nullopt);
  const Tick pause = streams_.log_columns > 0 ? kBetweenLines : kBetweenEvents;
  if (report.at - shown_at_ >= pause || report.step == run_.steps) show(report);
}

void RunReporter::on_generation(std::string shape) { shape_ = std::move(shape) + "  "; }

void RunReporter::on_validation(double loss) {
  validation_loss_ = loss;
  write_metrics(loss);
}

void RunReporter::write_metrics(std::optional<double> validation_loss) {
  if (std::exchange(is_written_, true)) return;
  const bool was_good = metrics_.good();
  metrics_ << metrics_line(*last_, statistics_, run_.steps, validation_loss, generation_) << std::endl;
  if (was_good && !metrics_.good()) note(LogLine("metrics_lost").add("path", run_.metrics_path).text());
}

void RunReporter::show(const trainer::StepReport& report) {
  shown_at_ = report.at;
  if (line_.is_visible()) {
    line_.show(shape_ + progress_text(report, statistics_, run_.steps, streams_.log_columns));
  } else {
    print_event(streams_, progress_event(report, statistics_, run_.steps, generation_, validation_loss_));
  }
}

void RunReporter::note(const std::string& event) {
  line_.clear();
  print_event(streams_, event);
}

void RunReporter::on_end() {
  write_metrics(std::nullopt);
  line_.keep();
}

}  // namespace everstep::launcher
