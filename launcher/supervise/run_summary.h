#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/supervise/generation_report.h"
#include "launcher/supervise/run_statistics.h"
#include "scheduler/plan.h"
#include "trainer/checkpoints/checkpoint_committer.h"

namespace everstep::launcher {

// One line of metrics.jsonl: what is known after an update of a run of so many steps. What is not finite is null.
std::string metrics_line(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                         std::optional<double> validation_loss, std::optional<Generation> generation = {});

// The outcome of a run.
struct RunSummary {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;  // since the start of training
  double loss = 0;
  std::optional<double> validation_loss;  // the last that was measured
  Rate rate;
  double seconds = 0;
  std::int64_t peak_bytes = 0;       // on the fullest worker, above what it had before the training; 0: nobody said
  std::int64_t predicted_bytes = 0;  // the same as the plan expected it
  scheduler::Plan plan;
  std::optional<trainer::CheckpointCounts> checkpoints;  // nothing: none were asked for
  std::optional<ElasticCounts> elastic;                  // nothing: the workers were fixed
  std::string output;
  std::string resume{};  // the command that goes on; empty: all steps are made, or there is nothing to go on with
};

// One line without a newline.
std::string summary_json(const RunSummary& summary);

// A few lines for people.
std::string summary_text(const RunSummary& summary);

// The same of a run that had nothing left to do after its last checkpoint: what is known from there.
std::string idle_summary_json(const storage::Manifest& last);
std::string idle_summary_text(const storage::Manifest& last);

}  // namespace everstep::launcher
