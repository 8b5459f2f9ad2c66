#include "launcher/supervise/run_summary.h"

#include "base/text.h"
#include "launcher/cli/json_number.h"
#include "launcher/cli/quantities.h"
#include "launcher/supervise/progress.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using storage::Json;

Json plan_json(const scheduler::Plan& plan) {
  Json cuts = Json::array();
  for (const int cut : plan.cuts) cuts.append(cut);
  Json json = Json::object();
  json.set("kind", to_string(plan.kind)).set("depth", plan.depth).set("pipelines", plan.pipelines);
  return json.set("width", plan.width).set("window", plan.window).set("cuts", std::move(cuts));
}

Json checkpoints_json(const trainer::CheckpointCounts& counts) {
  Json json = Json::object();
  json.set("saved", counts.saved).set("skipped", counts.skipped).set("failed", counts.failed);
  return json.set("last_step", counts.last_step ? Json(*counts.last_step) : Json(nullptr));
}

// "step 120, 12 saved, 1 skipped, 0 failed"
std::string checkpoints_text(const trainer::CheckpointCounts& counts) {
  return (counts.last_step ? "step " + std::to_string(*counts.last_step) : "none") + ", " +
         std::to_string(counts.saved) + " saved, " + std::to_string(counts.skipped) + " skipped, " +
         std::to_string(counts.failed) + " failed";
}

Json elastic_json(const ElasticCounts& counts) {
  Json json = Json::object();
  json.set("generations", counts.generations).set("changes", counts.changes);
  return json.set("minibatches_redone", counts.redone).set("goodput", counts.goodput);
}

// "3 generations, 2 changes of membership, 14 minibatches redone, goodput 0.982"
std::string elastic_text(const ElasticCounts& counts) {
  return counted(counts.generations, "generation", "generations") + ", " +
         counted(counts.changes, "change of membership", "changes of membership") + ", " +
         counted(counts.redone, "minibatch", "minibatches") + " redone, goodput " + fixed_text(counts.goodput, 3);
}

std::string mib_text(std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1 << 20), 0) + " MiB"; }

}  // namespace

std::string metrics_line(const trainer::StepReport& report, const RunStatistics& statistics, std::int64_t steps,
                         std::optional<double> validation_loss, std::optional<Generation> generation) {
  Json json = Json::object();
  if (generation) json.set("generation", generation->value);
  json.set("step", report.step).set("steps", steps).set("loss", finite_or_null(report.loss));
  json.set("learning_rate", finite_or_null(report.learning_rate));
  json.set("gradient_norm", finite_or_null(report.gradient_norm)).set("skipped", report.skipped);
  json.set("skipped_in_all", report.skipped_in_all);
  json.set("tokens", statistics.tokens()).set("tokens_per_s", statistics.last_tokens_per_s());
  json.set("busy", finite_or_null(report.busy)).set("seconds", statistics.seconds());
  json.set("seconds_left", seconds_left(report, statistics, steps));
  if (validation_loss) json.set("validation_loss", finite_or_null(*validation_loss));
  return storage::to_text(json, 0);
}

std::string summary_json(const RunSummary& summary) {
  Json json = Json::object();
  json.set("steps", summary.steps).set("loss", finite_or_null(summary.loss));
  json.set("validation_loss", summary.validation_loss ? finite_or_null(*summary.validation_loss) : Json(nullptr));
  json.set("tokens_per_s", summary.rate.tokens_per_s).set("busy", finite_or_null(summary.rate.busy));
  json.set("skipped", summary.skipped).set("seconds", summary.seconds);
  json.set("memory",
           Json::object().set("peak_bytes", summary.peak_bytes).set("predicted_bytes", summary.predicted_bytes));
  if (summary.checkpoints) json.set("checkpoints", checkpoints_json(*summary.checkpoints));
  if (summary.elastic) json.set("elastic", elastic_json(*summary.elastic));
  json.set("plan", plan_json(summary.plan)).set("output", summary.output);
  if (!summary.resume.empty()) json.set("resume", summary.resume);
  return storage::to_text(json, 0);
}

std::string summary_text(const RunSummary& summary) {
  const scheduler::Plan& plan = summary.plan;
  std::string text = "steps      " + std::to_string(summary.steps) + " in " + duration_text(summary.seconds);
  if (summary.skipped > 0)
    text += ", " + std::to_string(summary.skipped) + " skipped (gradient not finite or too large)";
  text += "\nloss       " + loss_text(summary.loss);
  if (summary.validation_loss) text += ", validation " + loss_text(*summary.validation_loss);
  text += "\nspeed      " + speed_text(summary.rate.tokens_per_s) + ", busy " + fixed_text(summary.rate.busy, 3);
  text += "\nplan       " + describe(plan.kind, plan.depth, plan.pipelines, plan.width) + ", window " +
          std::to_string(plan.window);
  text += "\nmemory     ";
  if (summary.peak_bytes > 0) text += mib_text(summary.peak_bytes) + " on the fullest worker, ";
  text += "predicted " + mib_text(summary.predicted_bytes);
  if (summary.checkpoints) text += "\ncheckpoint " + checkpoints_text(*summary.checkpoints);
  if (summary.elastic) text += "\nelastic    " + elastic_text(*summary.elastic);
  text += "\noutput     " + summary.output + "\n";
  return summary.resume.empty() ? text : text + "resume     " + summary.resume + "\n";
}

std::string idle_summary_json(const storage::Manifest& last) {
  Json json = Json::object();
  json.set("steps", last.version.value).set("loss", last.loss ? finite_or_null(*last.loss) : Json(nullptr));
  json.set("validation_loss", last.validation_loss ? finite_or_null(*last.validation_loss) : Json(nullptr));
  trainer::CheckpointCounts counts;
  counts.last_step = last.version.value;
  return storage::to_text(json.set("checkpoints", checkpoints_json(counts)), 0);
}

std::string idle_summary_text(const storage::Manifest& last) {
  const std::string step = std::to_string(last.version.value);
  return "steps      " + step + " before, nothing left to do\ncheckpoint step " + step + "\n";
}

}  // namespace everstep::launcher
