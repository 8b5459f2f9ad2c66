#include "launcher/doctor/report.h"

#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "launcher/cli/table.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;

std::int64_t count_of(const Report& report, Health health) {
  return std::count_if(report.checks.begin(), report.checks.end(),
                       [&](const Check& check) { return check.health == health; });
}

Json check_json(const Check& check) {
  Json logs = Json::object();
  for (const LogTail& log : check.logs) logs.set(log.file, log.text);
  Json json = Json::object();
  json.set("name", check.name).set("result", to_string(check.health)).set("figure", check.figure);
  json.set("limit", check.limit).set("reason", check.reason).set("seconds", check.seconds);
  return json.set("facts", check.facts).set("logs", std::move(logs));
}

}  // namespace

bool Report::has_failed() const { return count_of(*this, Health::kFailed) > 0; }

std::string verdict(const Report& report) {
  const std::int64_t open = count_of(report, Health::kNotChecked);
  const std::string all = counted(std::ssize(report.checks) - open, "check", "checks") + " on " + report.device;
  const std::string left = open == 0 ? "" : ", " + std::to_string(open) + " not checked";
  if (!report.has_failed()) return "passed: " + all + " in " + fixed_text(report.seconds, 0) + " s" + left;
  std::string names;
  for (const Check& check : report.checks) {
    if (check.health == Health::kFailed) names.append(names.empty() ? "" : ", ").append(check.name);
  }
  return "FAILED: " + names + " (" + std::to_string(count_of(report, Health::kFailed)) + " of " + all + left + ")";
}

std::string report_text(const Report& report, std::size_t columns) {
  Table table;
  table.columns = {{"check"}, {"result"}, {"figure"}, {"limit"}};
  table.key_columns = 2;
  for (const Check& check : report.checks) {
    const bool is_open = check.health == Health::kNotChecked;
    table.rows.push_back(
        {check.name, std::string(to_string(check.health)), is_open ? check.reason : check.figure, check.limit});
  }
  std::string text = to_text(table, columns) + "\n";
  for (const Check& check : report.checks) {
    if (check.health == Health::kFailed) text += check.name + ": " + check.reason + "\n";
  }
  if (!report.files.empty()) text += "files are in " + report.files + "\n";
  return text + verdict(report) + "\n";
}

Json report_json(const Report& report) {
  Json checks = Json::array();
  for (const Check& check : report.checks) checks.append(check_json(check));
  Json json = Json::object();
  json.set("everstep", kVersion).set("passed", !report.has_failed()).set("verdict", verdict(report));
  json.set("device", report.device).set("seconds", report.seconds).set("host", report.host);
  return json.set("checks", std::move(checks)).set("files", report.files);
}

}  // namespace everstep::launcher::doctor
