#include "base/text.h"
#include "launcher/checkpoint/comparison.h"
#include "launcher/cli/table.h"

namespace everstep::launcher {
namespace {

using storage::Json;

std::string shown(const std::string& value) { return value.empty() ? "-" : value; }

std::string distance_text(const TensorDifference& difference) {
  if (!difference.reason.empty()) return difference.reason;
  return difference.largest_distance ? shortest_text(static_cast<float>(*difference.largest_distance)) : "not finite";
}

std::string settings_table(const Comparison& comparison, std::size_t columns) {
  if (comparison.settings.empty()) return "";
  Table table;
  table.columns = {{"setting"}, {"A"}, {"B"}};
  for (const SettingDifference& setting : comparison.settings) {
    table.rows.push_back({setting.name, shown(setting.a), shown(setting.b)});
  }
  return to_text(table, columns) + "\n";
}

std::string totals_table(const Comparison& comparison) {
  Table table;
  table.columns = {{"kind"}, {"tensors", Align::kRight}, {"different", Align::kRight}};
  for (const KindTotals& totals : comparison.totals) {
    table.rows.push_back(
        {std::string(to_string(totals.kind)), std::to_string(totals.tensors), std::to_string(totals.different)});
  }
  return to_text(table);
}

std::string tensors_table(const Comparison& comparison, std::size_t rows, std::size_t columns) {
  if (comparison.tensors.empty() || rows == 0) return "";
  Table table;
  table.columns = {
      {"block", Align::kRight}, {"kind"}, {"tensor"}, {"elements", Align::kRight}, {"largest distance", Align::kRight}};
  table.key_columns = 3;
  for (const TensorDifference& tensor : comparison.tensors) {
    if (table.rows.size() == rows) break;
    table.rows.push_back({std::to_string(tensor.block), std::string(to_string(tensor.kind)), tensor.name,
                          tensor.reason.empty() ? std::to_string(tensor.elements) : "-", distance_text(tensor)});
  }
  const std::size_t more = comparison.tensors.size() - table.rows.size();
  return "\n" + to_text(table, columns) + (more > 0 ? "and " + std::to_string(more) + " more (see --rows)\n" : "");
}

}  // namespace

std::string comparison_text(const Comparison& comparison, std::size_t rows, std::size_t columns) {
  std::string text = settings_table(comparison, columns);
  if (!comparison.totals.empty()) text += totals_table(comparison) + tensors_table(comparison, rows, columns);
  return text.empty() ? "no differences\n" : text;
}

Json comparison_json(const Comparison& comparison) {
  Json settings = Json::array();
  for (const SettingDifference& setting : comparison.settings) {
    settings.append(Json::object().set("name", setting.name).set("a", setting.a).set("b", setting.b));
  }
  Json totals = Json::object();
  for (const KindTotals& total : comparison.totals) {
    totals.set(to_string(total.kind), Json::object().set("tensors", total.tensors).set("different", total.different));
  }
  Json tensors = Json::array();
  for (const TensorDifference& tensor : comparison.tensors) {
    Json json = Json::object();
    json.set("block", tensor.block).set("kind", to_string(tensor.kind)).set("name", tensor.name);
    json.set("reason", tensor.reason).set("elements", tensor.elements);
    json.set("largest_distance", tensor.largest_distance ? Json(*tensor.largest_distance) : Json(nullptr));
    tensors.append(std::move(json));
  }
  Json json = Json::object();
  json.set("equal", comparison.equal()).set("settings", std::move(settings));
  return json.set("kinds", std::move(totals)).set("tensors", std::move(tensors));
}

}  // namespace everstep::launcher
