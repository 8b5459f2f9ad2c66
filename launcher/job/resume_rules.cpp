#include "launcher/job/resume_rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/job/stored_model.h"
#include "launcher/job/train_request.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kDataDigest = "data-digest";
constexpr std::string_view kRateSteps = "lr-steps";

template <typename Number>
std::optional<bool> compare_as(const std::string& a, const std::string& b) {
  const auto number_a = parse_number<Number>(a);
  const auto number_b = parse_number<Number>(b);
  if (!number_a || !number_b) return std::nullopt;
  return *number_a == *number_b;
}

// How many windows in a row were skipped right before the checkpoint.
std::int64_t skipped_before(const storage::Manifest& manifest) {
  std::int64_t window = manifest.version.value;
  for (auto skipped = manifest.skipped.rbegin(); skipped != manifest.skipped.rend() && *skipped == window - 1;
       ++skipped) {
    --window;
  }
  return manifest.version.value - window;
}

std::string shown(const std::string& value) { return value.empty() ? "not set" : value; }

}  // namespace

bool is_same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  // Whole numbers first: large ones that differ may be the same double.
  if (const auto same = compare_as<std::int64_t>(a, b)) return *same;
  return compare_as<double>(a, b).value_or(false);
}

std::string setting_difference(const std::string& name, const std::string& old_value, const std::string& new_value) {
  if (name == kDataDigest) return "--data (another file: size or contents differ)";
  return "--" + name + " (was " + shown(old_value) + ", is " + shown(new_value) + ")";
}

storage::Settings stored_settings(const Config& config, const std::string& data_digest) {
  storage::Settings settings;
  for (const OptionSpec& option : train_options()) {
    const bool follows_steps = option.name == kRateSteps && !config.is_set(kRateSteps);
    settings.emplace_back(option.name, config.setting(follows_steps ? "steps" : option.name).text.value_or(""));
  }
  settings.emplace_back(kDataDigest, data_digest);
  std::sort(settings.begin(), settings.end());
  return settings;
}

Config with_stored_rate_steps(Config config, const storage::Settings& stored) {
  const std::string_view rate_steps = setting_of(stored, kRateSteps);
  if (config.is_set(kRateSteps) || rate_steps.empty()) return config;
  const auto setting = std::find_if(config.settings.begin(), config.settings.end(),
                                    [](const Setting& one) { return one.name == kRateSteps; });
  setting->text = std::string(rate_steps);
  return config;
}

std::optional<std::string> rate_steps_event(const Config& config, const storage::Settings& stored) {
  const std::string old_steps(setting_of(stored, kRateSteps));
  const std::string new_steps = config.setting(kRateSteps).text.value_or("");
  if (old_steps.empty() || new_steps.empty() || is_same_value(old_steps, new_steps)) return std::nullopt;
  return LogLine("learning_rate_end_changed").add("old", old_steps).add("new", new_steps).text();
}

Status check_same_settings(const storage::Settings& stored, const storage::Settings& now) {
  const std::vector<OptionSpec> options = train_options();
  std::string differences;
  for (const auto& old : stored) {
    const OptionSpec* option = find_option(options, old.first);
    if (option != nullptr && option->may_change_on_resume()) continue;
    const auto found =
        std::find_if(now.begin(), now.end(), [&](const auto& setting) { return setting.first == old.first; });
    if (found == now.end() || is_same_value(old.second, found->second)) continue;
    differences += (differences.empty() ? "" : ", ") + setting_difference(old.first, old.second, found->second);
  }
  if (differences.empty()) return {};
  return invalid_argument("the checkpoint was made with other settings: " + differences,
                          "give the old values, or start another --job");
}

trainer::ResumePoint resume_point(const storage::Manifest& manifest, const scheduler::Plan& plan) {
  trainer::ResumePoint point;
  point.position = manifest.name.position;
  point.version = manifest.version;
  point.applied = manifest.applied;
  point.skipped_in_a_row = skipped_before(manifest);
  point.clip_scale = manifest.clip_scale;
  point.continues_live = manifest.is_live() && manifest.plan == trainer::stored_plan(plan);
  point.continues_provisional = point.continues_live && manifest.has(storage::StateKind::kProvisional);
  for (const auto& [minibatch, loss] : manifest.window_losses) point.losses.push_back({minibatch, loss});
  return point;
}

}  // namespace everstep::launcher
