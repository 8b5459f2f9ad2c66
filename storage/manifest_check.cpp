#include <algorithm>
#include <functional>

#include "storage/bounds.h"
#include "storage/manifest.h"
#include "storage/manifest_check_files.h"

namespace everstep::storage {
namespace {

Status check_plan(const StoredPlan& plan, int blocks) {
  constexpr int kMostWorkers = 1'000'000;
  EVERSTEP_TRY(check_name("plan.schedule", plan.schedule));
  EVERSTEP_TRY(check_range("plan.depth", plan.depth, 1, kMostWorkers));
  EVERSTEP_TRY(check_range("plan.chunks_per_device", plan.chunks_per_device, 1, kMostWorkers));
  EVERSTEP_TRY(check_range("plan.width", plan.width, 1, kMostWorkers));
  EVERSTEP_TRY(check_range("plan.window", plan.window, 1, kLargestWindow));
  EVERSTEP_TRY(check_range("plan.preload", plan.preload, 0, kMostWorkers));
  EVERSTEP_TRY(check_range("plan.pipelines", plan.pipelines, 0, kMostWorkers));
  EVERSTEP_TRY(check_range("plan.lag", plan.lag, 0, plan.pipelines > 0 ? kMostWorkers : 0));
  EVERSTEP_TRY(check_range("plan.provisional", plan.provisional, 0, kMostWorkers));
  const bool rising = std::ranges::adjacent_find(plan.cuts, std::greater_equal<>()) == plan.cuts.end();
  if (plan.cuts.size() < 2 || plan.cuts.front() != 0 || plan.cuts.back() != blocks || !rising) {
    return invalid_argument("plan.cuts does not rise from 0 to " + std::to_string(blocks) + ", the number of blocks");
  }
  return {};
}

// Version and position tell the same time.
Status check_time(const Manifest& manifest) {
  EVERSTEP_TRY(check_bounds(manifest.name));
  EVERSTEP_TRY(check_range("version", manifest.version.value, 0, kMostVersions - 1));
  const std::int64_t start = manifest.version.value * manifest.plan.window;
  return check_range("position", manifest.name.position.value, start, start + manifest.plan.window - 1);
}

// Windows ascending, all of them in [0, end).
Status check_windows(std::string_view what, const std::vector<std::int64_t>& windows, std::int64_t end) {
  const std::string name(what);
  EVERSTEP_TRY(check_range("the number of " + name + " windows", static_cast<std::int64_t>(windows.size()), 0,
                           kMostListedWindows));
  if (windows.empty()) return {};
  if (std::ranges::adjacent_find(windows, std::greater_equal<>()) != windows.end()) {
    return invalid_argument("the " + name + " windows are not ascending");
  }
  EVERSTEP_TRY(check_range("the first of the " + name + " windows", windows.front(), 0, end - 1));
  return check_range("the last of the " + name + " windows", windows.back(), 0, end - 1);
}

Status check_history(const Manifest& manifest) {
  // The window that comes next may be known to begin on a drained pipeline.
  EVERSTEP_TRY(check_windows("flushed", manifest.flushed, manifest.version.value + 1));
  EVERSTEP_TRY(check_windows("skipped", manifest.skipped, manifest.version.value));
  const std::int64_t applied = manifest.version.value - static_cast<std::int64_t>(manifest.skipped.size());
  EVERSTEP_TRY(check_range("applied", manifest.applied, applied, applied));

  EVERSTEP_TRY(check_clip_scale(manifest.clip_scale));
  const auto expected = static_cast<std::size_t>(manifest.minibatches_into_window());
  bool fits = manifest.window_losses.size() == expected;
  for (std::size_t i = 0; fits && i < expected; ++i) {
    fits = manifest.window_losses[i].minibatch == static_cast<int>(i);
  }
  if (fits) return {};
  return invalid_argument("window_losses are not those of the unfinished window's " + std::to_string(expected) +
                          " minibatches");
}

Status check_settings(std::string_view what, const Settings& settings) {
  EVERSTEP_TRY(check_range("the number of settings in " + std::string(what), static_cast<std::int64_t>(settings.size()),
                           0, kMostSettings));
  const std::string* before = nullptr;
  for (const auto& [name, value] : settings) {
    EVERSTEP_TRY(check_name("a name in " + std::string(what), name));
    const std::string place = std::string(what) + ": '" + name + "'";
    if (before != nullptr && *before >= name) return invalid_argument(place + " is not in ascending order");
    if (value.size() > kLongestValue) {
      return invalid_argument(place + " has " + std::to_string(value.size()) + " bytes, the limit is " +
                              std::to_string(kLongestValue));
    }
    before = &name;
  }
  return {};
}

}  // namespace

Status check_job_name(std::string_view job) {
  constexpr std::size_t kLongestJob = 63;
  const auto is_letter_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool fits = !job.empty() && job.size() <= kLongestJob && is_letter_or_digit(job.front()) &&
                    std::ranges::all_of(job, [&](char c) { return c == '-' || is_letter_or_digit(c); });
  if (fits) return {};
  return invalid_argument("the name of the job is refused",
                          "use 1 to 63 lower-case letters, digits and '-', the first one no '-'");
}

Status check(const Manifest& manifest) {
  EVERSTEP_TRY(check_job_name(manifest.job));
  EVERSTEP_TRY(check_range("blocks", manifest.blocks, 1, kMostBlocks));
  EVERSTEP_TRY(check_plan(manifest.plan, manifest.blocks));
  EVERSTEP_TRY(check_time(manifest));
  if (manifest.accumulation != "float32" && manifest.accumulation != "fixed48") {
    return invalid_argument("accumulation is neither float32 nor fixed48");
  }
  EVERSTEP_TRY(check_history(manifest));
  EVERSTEP_TRY(check_settings("configuration", manifest.configuration));
  EVERSTEP_TRY(check_settings("provenance", manifest.provenance));
  return check_files(manifest);
}

}  // namespace everstep::storage
