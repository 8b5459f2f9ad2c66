#include "elastic/brain/anomaly_trial.h"

#include <utility>

namespace everstep::elastic {
namespace {

std::string description(const AnomalyReport& report) {
  return "the gradient of window " + std::to_string(report.window) +
         (report.norm_limit > 0 ? " exploded" : " was not finite") +
         (report.minibatch ? " (minibatch " + std::to_string(report.minibatch->value) + ")" : "");
}

}  // namespace

TrialStep next_step(const std::optional<AnomalyTrial>& before, const AnomalyReport& happened) {
  TrialStep step;
  step.trial.report = happened;
  step.what = description(happened);
  if (!before || before->report.window != happened.window) {
    step.what += ": it is run again";
    return step;
  }
  step.trial.failures = before->failures + 1;
  const std::optional<Position>& first = before->report.minibatch;
  const bool is_comparable = first.has_value() == happened.minibatch.has_value();
  constexpr int kMost = 3;
  step.trial.skips = is_comparable || step.trial.failures >= kMost;
  if (first && !happened.minibatch) step.trial.report = before->report;
  if (first && first == happened.minibatch) {
    step.left_out = first;
    step.what += " again: it is left out";
    return step;
  }
  // Of several minibatches the first is told: an earlier one says nothing about this.
  const bool has_passed = first && (!happened.minibatch || *happened.minibatch > *first);
  if (before->convicts && has_passed && happened.norm_limit == 0) step.guilty = before->report.suspect;
  step.what += step.trial.skips ? " again: the window is run a last time" : " again: it is run once more";
  return step;
}

std::optional<AnomalyTrial> carried_on(AnomalyTrial trial, Position origin, int window, bool same_bits) {
  const Position begin{trial.report.window * window};
  if (origin >= Position{begin.value + window}) return std::nullopt;
  const bool is_first_replay = trial.failures == 1 && trial.report.suspect && trial.report.repeats;
  trial.convicts = is_first_replay && same_bits && origin == begin;
  return trial;
}

}  // namespace everstep::elastic
