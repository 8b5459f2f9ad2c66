#include "scheduler/comparison.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/text.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {
namespace {

constexpr int kChunks = 2;

ComparisonCell measure(ScheduleKind kind, int depth, int rounds) {
  ScheduleRequest request;
  request.kind = kind;
  request.depth = depth;
  request.chunks_per_device = kChunks;
  request.window = depth * rounds;
  // Two units per stage, so that half a stage is a whole number.
  const Tick units = kind == ScheduleKind::kInterleaved ? 1 : kChunks;
  const int stages = kind == ScheduleKind::kInterleaved ? kChunks * depth : depth;
  TimingModel model = TimingModel::uniform(stages, units, 2 * units);
  for (StageCost& stage : model.stages) {
    stage.activation_bytes = units;
    if (splits_backwards(kind)) stage.weights_kept_bytes = units;
  }
  const auto steady = steady_state(request, model);
  EVERSTEP_CHECK(steady.ok(), steady.error().line());
  // The pipeline is full, and stays so, from the second window on.
  request.windows = 3;
  const auto schedule = make_schedule(request);
  std::int64_t peak = 0;
  for (const DeviceUse& use : device_uses(*schedule, model)) peak = std::max(peak, use.peak_activation_bytes);
  return {depth, rounds, steady->busy(), static_cast<double>(peak) / kChunks};
}

std::string table(const std::vector<ComparisonRow>& rows, const std::string& corner,
                  const std::function<std::string(const ComparisonCell&)>& text) {
  std::string header = "| " + corner + " |";
  std::string rule = "|---|";
  for (const ComparisonCell& cell : rows.front().cells) {
    header += " D=" + std::to_string(cell.depth) + ", T=" + std::to_string(cell.rounds) + " |";
    rule += "---:|";
  }
  std::string lines = header + "\n" + rule + "\n";
  for (const ComparisonRow& row : rows) {
    lines += "| " + std::string(to_string(row.kind)) + " |";
    for (const ComparisonCell& cell : row.cells) lines += " " + text(cell) + " |";
    lines += "\n";
  }
  return lines;
}

}  // namespace

std::vector<ComparisonRow> compare_schedules(const std::vector<int>& depths, const std::vector<int>& rounds) {
  std::vector<ComparisonRow> rows;
  for (const ScheduleKind kind : all_schedule_kinds()) {
    ComparisonRow& row = rows.emplace_back();
    row.kind = kind;
    for (const int depth : depths) {
      for (const int count : rounds) row.cells.push_back(measure(kind, depth, count));
    }
  }
  return rows;
}

std::string to_markdown(const std::vector<ComparisonRow>& rows) {
  EVERSTEP_CHECK(!rows.empty(), "a table without rows");
  return table(rows, "busy", [](const ComparisonCell& cell) { return fixed_text(cell.busy, 3); }) + "\n" +
         table(rows, "activations in flight",
               [](const ComparisonCell& cell) { return number_text(cell.activations, 1); });
}

}  // namespace everstep::scheduler
