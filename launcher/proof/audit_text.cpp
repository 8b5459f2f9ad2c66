#include <algorithm>

#include "base/text.h"
#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/printable.h"
#include "launcher/cli/table.h"
#include "launcher/proof/audit.h"

namespace everstep::launcher {
namespace {

using storage::Json;

// Preload and cuts, which no table has room for, stay away.
std::string short_plan(const std::string& plan) { return plan.substr(0, plan.find(" preload=")); }

Table stretches_table(const AuditReport& report) {
  Table table;
  table.columns = {{"generation", Align::kRight},    {"plan"},
                   {"updates", Align::kRight},       {"minibatches", Align::kRight},
                   {"from position", Align::kRight}, {"to position", Align::kRight}};
  for (const AuditedStretch& stretch : report.stretches) {
    table.rows.push_back({std::to_string(stretch.generation.value), printable(short_plan(stretch.plan)),
                          grouped(stretch.updates), grouped(stretch.to.value - stretch.from.value),
                          grouped(stretch.from.value), grouped(stretch.to.value)});
  }
  return table;
}

std::string held_text(Proof proof, const AuditReport& report) {
  switch (proof) {
    case Proof::kOnce:
      return counted(report.minibatches, "minibatch", "minibatches") + ", each exactly once" +
             (report.skipped > 0 ? "; " + counted(report.skipped, "update", "updates") + " skipped" : "") +
             (report.left_out.empty()
                  ? ""
                  : "; " + counted(std::ssize(report.left_out), "minibatch", "minibatches") + " left out");
    case Proof::kChain:
      return counted(report.commits, "commit", "commits") + ", " + grouped(report.kept) +
             " kept, linked without a gap by " + counted(report.segments, "ledger segment", "ledger segments") +
             (report.fallbacks.empty() ? "" : "; " + counted(std::ssize(report.fallbacks), "fallback", "fallbacks"));
    case Proof::kRestore:
      return counted(report.kept, "checkpoint", "checkpoints") + ", " + counted(report.files, "file", "files") + ", " +
             size_text(report.bytes) + ", all whole";
  }
  EVERSTEP_CHECK(false, "no such proof");
}

std::string proof_line(Proof proof, const AuditReport& report) {
  std::vector<std::string> broken;
  for (const Violation& violation : report.violations) {
    if (violation.proof == proof) broken.push_back(printable(violation.object + " " + violation.what));
  }
  const std::string start = std::string(to_string(proof)) + ": ";
  if (broken.empty()) return start + held_text(proof, report) + "\n";
  std::string lines;
  for (const std::string& each : broken) lines.append(start).append("VIOLATED: ").append(each).append("\n");
  return lines;
}

Json strings_json(const std::vector<std::string>& strings) {
  Json json = Json::array();
  for (const std::string& text : strings) json.append(text);
  return json;
}

Json stretch_json(const AuditedStretch& stretch) {
  Json json = Json::object();
  json.set("generation", stretch.generation.value).set("plan", stretch.plan).set("updates", stretch.updates);
  json.set("minibatches", stretch.to.value - stretch.from.value).set("from", stretch.from.value);
  return json.set("to", stretch.to.value);
}

Json violation_json(const Violation& violation) {
  Json json = Json::object();
  return json.set("proof", to_string(violation.proof)).set("object", violation.object).set("what", violation.what);
}

}  // namespace

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::kOnce:
      return "once";
    case Proof::kChain:
      return "chain";
    case Proof::kRestore:
      return "restore";
  }
  EVERSTEP_CHECK(false, "no such proof");
}

std::string audit_text(const AuditReport& report, const StoreLocation& location, std::size_t columns) {
  std::string text = report.stretches.empty() ? "" : to_text(stretches_table(report), columns);
  for (const std::string& fallback : report.fallbacks) text += "fallback: " + printable(fallback) + "\n";
  for (const std::string& orphan : report.orphans) text += "orphan: " + printable(orphan) + " was never committed\n";
  text += authenticity_line(location);
  for (const Proof proof : {Proof::kOnce, Proof::kChain, Proof::kRestore}) text += proof_line(proof, report);
  return text + (report.violations.empty() ? "audit: nothing lost, nothing doubled\n" : "");
}

Json audit_json(const AuditReport& report, const StoreLocation& location) {
  Json stretches = Json::array();
  for (const AuditedStretch& stretch : report.stretches) stretches.append(stretch_json(stretch));
  Json violations = Json::array();
  for (const Violation& violation : report.violations) violations.append(violation_json(violation));
  Json json = Json::object();
  json.set("job", location.job).set("authenticity", authenticity_word(location));
  json.set("good", report.violations.empty()).set("stretches", std::move(stretches));
  json.set("minibatches", report.minibatches).set("kept_minibatches", report.kept_minibatches);
  json.set("skipped_updates", report.skipped).set("commits", report.commits);
  json.set("kept", report.kept).set("ledger_segments", report.segments).set("files", report.files);
  Json left_out = Json::array();
  for (const Position& position : report.left_out) left_out.append(position.value);
  json.set("left_out", std::move(left_out));
  json.set("bytes", report.bytes).set("fallbacks", strings_json(report.fallbacks));
  json.set("orphans", strings_json(report.orphans));
  return json.set("violations", std::move(violations));
}

}  // namespace everstep::launcher
