#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "launcher/cli/command.h"
#include "launcher/cli/progress_line.h"
#include "launcher/supervise/run_statistics.h"

namespace everstep::launcher {

// Tells how a run goes while it goes: a line per update in a file, a progress line on a terminal or an event in the
// log every few seconds, and an event at once for an update that is skipped.
class RunReporter {
 public:
  struct Run {
    std::int64_t steps = 0;
    std::int64_t evaluate_every = 0;  // updates; 0 = never
    std::int64_t tokens_per_step = 0;
    std::string metrics_path;
    trainer::Accumulation accumulation = trainer::Accumulation::kFloat;
  };

  RunReporter(Run run, Streams& streams);

  void on_start(Tick now);
  // The generation is that of an elastic job in which the step was made.
  void on_step(const trainer::StepReport& report, std::optional<Generation> generation = {});
  // Of the step that was told last.
  void on_validation(double loss);
  // Of an elastic job: what the progress line begins with from now on.
  void on_generation(std::string shape);
  // An event in the log that does not disturb the progress line.
  void note(const std::string& event);
  // Leaves the progress line as it is.
  void on_end();

  const RunStatistics& statistics() const { return statistics_; }
  const std::optional<trainer::StepReport>& last() const { return last_; }
  const std::optional<double>& validation_loss() const { return validation_loss_; }

 private:
  void show(const trainer::StepReport& report);
  void write_metrics(std::optional<double> validation_loss);

  Run run_;
  Streams& streams_;
  std::ofstream metrics_;
  RunStatistics statistics_;
  std::optional<trainer::StepReport> last_;
  bool is_written_ = true;  // the metrics of the last step, which may wait for its validation
  std::optional<double> validation_loss_;
  std::optional<Generation> generation_;
  std::string shape_;
  Tick shown_at_ = 0;
  ProgressLine line_;
};

}  // namespace everstep::launcher
