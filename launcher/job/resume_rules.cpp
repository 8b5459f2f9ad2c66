#include "launcher/job/resume_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/job/stored_model.h"
#include "launcher/job/train_request.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kDataDigest = "data-digest";
constexpr std::string_view kRateSteps = "lr-steps";

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 3> kLength{"steps", "lr-steps", "min-lr"};
constexpr std::array<std::string_view, 10> kPlan{"workers", "schedule",    "depth",      "pipelines",  "width",
                                                 "shapes",  "synchronous", "memory-gib", "redundancy", "rebalance"};
constexpr std::array<std::string_view, 2> kEqualBits{"recompute", "compare-replicas"};
constexpr std::array<std::string_view, 4> kProcesses{"timeout", "output", "trace", "json"};
constexpr std::array<std::string_view, 8> kCheckpoints{"checkpoint-dir", "checkpoint-every", "keep-last",
                                                       "keep-every",     "keep-best",        "resume",
                                                       "secret-file",    "drop-secret"};
constexpr std::array<std::string_view, 1> kMayHaveMoved{"data"};  // its digest tells whether it is the same

constexpr std::array<std::string_view, 10> kMembership{
    "etcd",      "etcd-ca",           "etcd-cert",   "etcd-key",      "etcd-plain-text",
    "lease-ttl", "etcd-outage-limit", "min-workers", "join-debounce", "join-interval"};
constexpr std::array<std::string_view, 10> kHost{"bind",     "advertise", "port-range", "wire",   "tls-ca",
                                                 "tls-cert", "tls-key",   "metrics",    "notice", "notice-url"};
constexpr std::array<std::string_view, 3> kSupervision{"restart", "explode", "max-skipped-updates"};

constexpr std::array<Names, 9> kMayDiffer{kLength,       kPlan,       kEqualBits, kProcesses,  kCheckpoints,
                                          kMayHaveMoved, kMembership, kHost,      kSupervision};

bool may_differ(std::string_view name) {
  return std::any_of(kMayDiffer.begin(), kMayDiffer.end(),
                     [&](Names group) { return std::find(group.begin(), group.end(), name) != group.end(); });
}

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
  std::string differences;
  for (const auto& old : stored) {
    if (may_differ(old.first)) continue;
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
  point.continues_live = manifest.has(storage::StateKind::kPrevious) && manifest.plan == trainer::stored_plan(plan);
  for (const auto& [minibatch, loss] : manifest.window_losses) point.losses.push_back({minibatch, loss});
  return point;
}

}  // namespace everstep::launcher
