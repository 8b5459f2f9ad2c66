#include "launcher/train/resume_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "launcher/train/commit_assembly.h"
#include "launcher/train/train_request.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kDataDigest = "data-digest";

constexpr auto kMayDiffer = std::to_array<std::string_view>({
    "steps",          "lr-steps",
    "min-lr",  // how long, and to where
    "workers",        "schedule",
    "depth",          "pipelines",
    "width",                         // the plan
    "synchronous",    "memory-gib",  //
    "bind",           "port",
    "timeout",        "output",
    "trace",          "json",  // processes, files, logs
    "checkpoint-dir", "checkpoint-every",
    "keep-last",      "keep-every",
    "keep-best",      "resume",  // checkpoints
    "secret-file",               //
    "data",                      // may have moved: its digest tells whether it is the same
});

bool may_differ(std::string_view name) {
  return std::find(kMayDiffer.begin(), kMayDiffer.end(), name) != kMayDiffer.end();
}

// 0.10 is 0.1.
bool is_same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto number_a = parse_number<double>(a);
  const auto number_b = parse_number<double>(b);
  return number_a && number_b && *number_a == *number_b;
}

std::string shown(const std::string& value) { return value.empty() ? "not set" : value; }

std::string difference(const std::string& name, const std::string& old_value, const std::string& new_value) {
  if (name == kDataDigest) return "--data (another file: size or contents differ)";
  return "--" + name + " (was " + shown(old_value) + ", is " + shown(new_value) + ")";
}

}  // namespace

storage::Settings stored_settings(const Config& config, const std::string& data_digest) {
  storage::Settings settings;
  for (const OptionSpec& option : train_options()) {
    settings.emplace_back(option.name, config.setting(option.name).text.value_or(""));
  }
  settings.emplace_back(kDataDigest, data_digest);
  std::sort(settings.begin(), settings.end());
  return settings;
}

Status check_same_settings(const storage::Settings& stored, const storage::Settings& now) {
  std::string differences;
  for (const auto& old : stored) {
    if (may_differ(old.first)) continue;
    const auto found =
        std::find_if(now.begin(), now.end(), [&](const auto& setting) { return setting.first == old.first; });
    if (found == now.end() || is_same_value(old.second, found->second)) continue;
    differences += (differences.empty() ? "" : ", ") + difference(old.first, old.second, found->second);
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
  point.continues_live = manifest.has(storage::StateKind::kPrevious) && manifest.plan == stored_plan(plan);
  for (const auto& [minibatch, loss] : manifest.window_losses) point.losses.push_back({minibatch, loss});
  return point;
}

}  // namespace everstep::launcher
