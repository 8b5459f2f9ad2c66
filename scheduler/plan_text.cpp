#include "scheduler/plan_text.h"

#include <optional>

#include "base/text.h"

namespace everstep::scheduler {
namespace {

constexpr int kMostWorkers = 1'000'000;

// The text before the first `separator`, which is taken off `text` together with it.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t place = text.find(separator);
  const std::string_view part = text.substr(0, place);
  text = place == std::string_view::npos ? std::string_view() : text.substr(place + 1);
  return part;
}

std::optional<int> next_number(std::string_view& text, std::string_view name) {
  std::string_view part = next_part(text, ' ');
  if (!part.starts_with(name)) return std::nullopt;
  return parse_number<int>(part.substr(name.size()));
}

std::optional<Cuts> next_cuts(std::string_view& text) {
  constexpr std::string_view kName = "cuts=";
  std::string_view part = next_part(text, ' ');
  if (!part.starts_with(kName)) return std::nullopt;
  part.remove_prefix(kName.size());
  Cuts cuts;
  while (!part.empty()) {
    const auto cut = parse_number<int>(next_part(part, ','));
    if (!cut) return std::nullopt;
    cuts.push_back(*cut);
  }
  return cuts;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text = describe(plan.kind, plan.depth, plan.pipelines, plan.width) + " M=" + std::to_string(plan.window) +
                     " preload=" + std::to_string(plan.preload);
  if (is_clockwork(plan.kind)) text += " lag=" + std::to_string(plan.lag);
  if (plan.provisional > 0) text += " provisional=" + std::to_string(plan.provisional);
  text += " cuts=";
  for (const int cut : plan.cuts) text += (cut == 0 ? "" : ",") + std::to_string(cut);
  return text;
}

Result<Plan> parse_plan_text(std::string_view text) {
  const Error none = invalid_argument("'" + std::string(text) + "' is no plan",
                                      "expected a text like amdp D=4 P=2 W=1 M=16 preload=2 cuts=0,2,4,6,8");
  std::string_view rest = text;
  const auto kind = parse_schedule_kind(next_part(rest, ' '));
  const auto depth = next_number(rest, "D=");
  const auto pipelines = next_number(rest, "P=");
  const auto width = next_number(rest, "W=");
  const auto window = next_number(rest, "M=");
  const auto preload = next_number(rest, "preload=");
  const auto lag = kind && is_clockwork(*kind) ? next_number(rest, "lag=") : std::optional(0);
  const auto provisional = rest.starts_with("provisional=") ? next_number(rest, "provisional=") : std::optional(0);
  const auto cuts = next_cuts(rest);
  if (!kind || !depth || !pipelines || !width || !window || !preload || !lag || !provisional || !cuts) return none;
  if (*depth < 1 || *width < 1 || *depth > kMostWorkers / *width) return none;
  Plan plan;
  plan.kind = *kind;
  plan.depth = *depth;
  plan.pipelines = *pipelines;
  plan.width = *width;
  plan.window = *window;
  plan.preload = *preload;
  plan.lag = *lag;
  plan.provisional = *provisional;
  plan.cuts = *cuts;
  plan.workers.resize(static_cast<std::size_t>(*depth) * static_cast<std::size_t>(*width));
  EVERSTEP_TRY(check(plan));
  if (plan_text(plan) != text) return none;
  return plan;
}

}  // namespace everstep::scheduler
