#include "launcher/job/stored_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace everstep::launcher {
namespace {

using scheduler::ModelShape;

struct Size {
  std::string_view option;
  int ModelShape::*member;
};

constexpr std::array<Size, 5> kSizes{{{"layers", &ModelShape::layers},
                                      {"hidden", &ModelShape::hidden},
                                      {"heads", &ModelShape::heads},
                                      {"sequence", &ModelShape::sequence},
                                      {"vocabulary", &ModelShape::vocabulary}}};

Error bad_setting(std::string_view name, std::string_view value) {
  return invalid_argument("the setting " + std::string(name) + " = '" + std::string(value) + "' makes no model");
}

bool has_same_sizes(const ModelShape& a, const ModelShape& b) {
  return a.family == b.family &&
         std::all_of(kSizes.begin(), kSizes.end(), [&](const Size& size) { return a.*size.member == b.*size.member; });
}

// The named model of these sizes; else the first of its family.
const ModelShape& nearest_named(const ModelShape& shape) {
  const auto& models = scheduler::named_models();
  const auto same = std::find_if(models.begin(), models.end(),
                                 [&](const ModelShape& candidate) { return has_same_sizes(candidate, shape); });
  if (same != models.end()) return *same;
  return *std::find_if(models.begin(), models.end(),
                       [&](const ModelShape& candidate) { return candidate.family == shape.family; });
}

}  // namespace

std::string_view setting_of(const storage::Settings& settings, std::string_view name) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& setting) { return setting.first == name; });
  if (found == settings.end()) return {};
  return found->second;
}

Result<trainer::ModelConfig> stored_model(const storage::Settings& configuration) {
  const std::string_view name = setting_of(configuration, "model");
  auto shape = scheduler::find_model(name);
  if (!shape) return bad_setting("model", name);
  trainer::ModelConfig model;
  model.shape = std::move(shape).value();
  for (const Size& size : kSizes) {
    const std::string_view value = setting_of(configuration, size.option);
    if (value.empty()) continue;
    const auto number = parse_number<int>(value);
    if (!number) return bad_setting(size.option, value);
    model.shape.*size.member = *number;
  }
  model.next_sentence = setting_of(configuration, "next-sentence") == "true";
  const std::string_view precision = setting_of(configuration, "precision");
  if (!precision.empty() && precision != "fp32" && precision != "bf16") return bad_setting("precision", precision);
  model.precision = precision == "bf16" ? trainer::Precision::kBf16 : trainer::Precision::kFp32;
  if (const std::string_view dropout = setting_of(configuration, "dropout"); !dropout.empty()) {
    const auto number = parse_number<double>(dropout);
    if (!number) return bad_setting("dropout", dropout);
    model.dropout = *number;
  }
  EVERSTEP_TRY(check(model));
  return model;
}

storage::Settings model_settings(const trainer::ModelConfig& model) {
  const ModelShape& named = nearest_named(model.shape);
  const bool is_named = has_same_sizes(named, model.shape);
  storage::Settings settings;
  settings.emplace_back("model", named.name);
  for (const Size& size : kSizes) {
    settings.emplace_back(size.option, is_named ? "" : std::to_string(model.shape.*size.member));
  }
  settings.emplace_back("next-sentence", model.next_sentence ? "true" : "false");
  settings.emplace_back("precision", model.precision == trainer::Precision::kBf16 ? "bf16" : "fp32");
  std::sort(settings.begin(), settings.end());
  return settings;
}

}  // namespace everstep::launcher
