#include "launcher/supervise/generation_report.h"

#include <algorithm>
#include <cmath>

#include "base/log_line.h"
#include "base/text.h"

namespace everstep::launcher {
namespace {

std::string seconds_text(double seconds) {
  constexpr double kShort = 10;
  return std::isfinite(seconds) ? fixed_text(seconds, seconds < kShort ? 3 : 1) + "s" : "unknown";
}

}  // namespace

std::string generation_event(const GenerationChanged& change) {
  LogLine event("generation");
  event.add("n", change.generation.value).add("plan", change.plan).add("workers", change.workers);
  if (change.spares > 0) event.add("spares", change.spares);
  event.add("reason", change.reason).add("from", change.origin).add("step", change.step).add("redone", change.redone);
  event.add("detect", seconds_text(change.phases.detect)).add("agree", seconds_text(change.phases.agree));
  event.add("connect", seconds_text(change.phases.connect)).add("move", seconds_text(change.phases.move));
  event.add("first_step", seconds_text(change.phases.first_step)).add("stall", seconds_text(change.stall));
  return event.text();
}

std::string generation_text(const GenerationChanged& change) {
  std::string text = "gen " + std::to_string(change.generation.value) + "  " + change.plan + "  " +
                     std::to_string(change.workers) + (change.workers == 1 ? " worker" : " workers");
  if (change.spares > 0) text += " + " + std::to_string(change.spares);
  return text;
}

bool GenerationTally::take(const ElasticStep& step) {
  const std::pair now(step.generation, step.report.step);
  if (now <= last_step_) return false;
  last_step_ = now;
  is_validated_ = false;
  return true;
}

bool GenerationTally::take(const GenerationChanged& change) {
  if (change.generation <= last_generation_) return false;
  // What the first one took is the start of the run, not the price of a change.
  if (generations_ > 0) {
    redone_ += change.redone;
    stalled_ += std::isfinite(change.stall) ? change.stall : 0;
  }
  last_generation_ = change.generation;
  ++generations_;
  return true;
}

bool GenerationTally::take(const Validation& validation) {
  if (validation.step != last_step_.second || is_validated_) return false;
  is_validated_ = true;
  return true;
}

ElasticCounts GenerationTally::counts(std::int64_t minibatches, double seconds) const {
  ElasticCounts counts;
  counts.generations = generations_;
  counts.changes = std::max<std::int64_t>(0, generations_ - 1);
  counts.redone = redone_;
  const std::int64_t done = minibatches + redone_;
  const double useful = done > 0 ? static_cast<double>(minibatches) / static_cast<double>(done) : 1;
  const double running = seconds > 0 ? std::clamp(1 - stalled_ / seconds, 0.0, 1.0) : 1;
  counts.goodput = useful * running;
  return counts;
}

}  // namespace everstep::launcher
