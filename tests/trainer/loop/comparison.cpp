#include "tests/trainer/loop/comparison.h"

#include <bit>
#include <cmath>
#include <sstream>

namespace everstep::trainer {
namespace {

// Also true for two equal NaNs, and false for zeros of different sign.
bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

// Both not finite, or the same bits: which NaN a machine makes is nobody's business.
bool same_number(double a, double b) { return same_bits(a, b) || (std::isnan(a) && std::isnan(b)); }

std::string both(const std::string& what, double found, double expected) {
  std::ostringstream text;
  text.precision(17);
  text << what << " is " << found << " instead of " << expected;
  return text.str();
}

std::string difference_of_steps(const std::vector<OracleStep>& expected, const std::vector<OracleStep>& found) {
  if (found.size() != expected.size()) {
    return both("the number of updates", static_cast<double>(found.size()), static_cast<double>(expected.size()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string update = " of update " + std::to_string(i);
    if (found[i].skipped != expected[i].skipped) return "update " + std::to_string(i) + " is skipped by one alone";
    if (!same_number(found[i].loss, expected[i].loss)) {
      return both("the loss" + update, found[i].loss, expected[i].loss);
    }
    // The sums of a skipped window are undefined.
    if (!found[i].skipped && !same_number(found[i].gradient_norm, expected[i].gradient_norm)) {
      return both("the gradient's norm" + update, found[i].gradient_norm, expected[i].gradient_norm);
    }
  }
  return {};
}

std::string difference_of_weights(const NamedWeights& expected, const NamedWeights& found) {
  for (const auto& [name, values] : found) {
    const auto place = expected.find(name);
    if (place == expected.end() || place->second.size() != values.size()) return name + " is not in the reference";
    std::size_t differing = 0;
    std::string first;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (same_bits(values[i], place->second[i])) continue;
      if (differing++ == 0) first = both(name + "[" + std::to_string(i) + "]", values[i], place->second[i]);
    }
    if (differing > 0) return first + ", and " + std::to_string(differing - 1) + " more";
  }
  return {};
}

std::string difference_of_validation(const std::vector<double>& expected, const std::vector<double>& found) {
  if (found.size() != expected.size()) {
    return both("the number of evaluations", static_cast<double>(found.size()), static_cast<double>(expected.size()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!same_number(found[i], expected[i])) {
      return both("validation loss " + std::to_string(i), found[i], expected[i]);
    }
  }
  return {};
}

std::vector<OracleStep> steps_of(const WorkerRun& run) {
  std::vector<OracleStep> steps;
  for (const StepReport& step : run.steps) steps.push_back({step.loss, step.gradient_norm, step.skipped});
  return steps;
}

std::string difference_of_worker(const OracleRun& reference, const WorkerRun& run) {
  if (auto text = difference_of_steps(reference.steps, steps_of(run)); !text.empty()) return text;
  if (auto text = difference_of_validation(reference.validation_losses, run.validation_losses); !text.empty()) {
    return text;
  }
  for (const auto& [stage, weights] : run.chunks) {
    if (auto text = difference_of_weights(reference.weights, weights); !text.empty()) {
      return "stage " + std::to_string(stage) + ": " + text;
    }
  }
  return {};
}

}  // namespace

std::string difference_from(const OracleRun& reference, const Result<std::vector<WorkerRun>>& runs) {
  if (!runs) return runs.error().line();
  for (std::size_t worker = 0; worker < runs->size(); ++worker) {
    if (auto text = difference_of_worker(reference, (*runs)[worker]); !text.empty()) {
      return "worker " + std::to_string(worker) + ": " + text;
    }
  }
  return joined_weights(*runs).size() == reference.weights.size() ? "" : "some parameters are on no worker";
}

std::string difference_between(const Result<std::vector<WorkerRun>>& expected,
                               const Result<std::vector<WorkerRun>>& runs) {
  if (!expected) return expected.error().line();
  const WorkerRun& first = expected->front();
  return difference_from({steps_of(first), first.validation_losses, joined_weights(*expected)}, runs);
}

std::string difference_among_replicas(const Result<std::vector<WorkerRun>>& runs) {
  return difference_between(runs, runs);
}

NamedWeights joined_weights(const std::vector<WorkerRun>& runs) {
  NamedWeights joined;
  for (const WorkerRun& run : runs) {
    for (const auto& [stage, weights] : run.chunks) joined.insert(weights.begin(), weights.end());
  }
  return joined;
}

double relative_distance(const NamedWeights& a, const NamedWeights& b, const NamedWeights& start) {
  double apart = 0;
  double gone = 0;
  for (const auto& [name, values] : b) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      apart += std::pow(a.at(name)[i] - values[i], 2);
      gone += std::pow(values[i] - start.at(name)[i], 2);
    }
  }
  return std::sqrt(apart / gone);
}

}  // namespace everstep::trainer
