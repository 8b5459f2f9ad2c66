#include "scheduler/placement.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "scheduler/clockwork.h"

namespace everstep::scheduler {
namespace {

constexpr std::array<std::pair<ScheduleKind, std::string_view>, 9> kKindNames{{
    {ScheduleKind::kAmdp, "amdp"},
    {ScheduleKind::kAmdpSync, "amdp-sync"},
    {ScheduleKind::kOneFOneB, "1f1b"},
    {ScheduleKind::kTwoDirections, "two-directions"},
    {ScheduleKind::kGpipe, "gpipe"},
    {ScheduleKind::kInterleaved, "interleaved"},
    {ScheduleKind::kPipedream2bw, "pipedream-2bw"},
    {ScheduleKind::kClockwork, "clockwork"},
    {ScheduleKind::kClockworkSync, "clockwork-sync"},
}};

// The closed form: even pipelines climb the ring from device 2j, odd ones descend from device 2j + 1.
int amdp_device(int pipeline, int stage, int depth) {
  const int device = pipeline % 2 == 0 ? 2 * pipeline + stage : 2 * pipeline + 1 - stage;
  return (device + depth) % depth;
}

std::vector<int> device_table(int depth, int pipelines, int stages, auto device) {
  std::vector<int> ring;
  ring.reserve(static_cast<std::size_t>(pipelines) * stages);
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
    for (int stage = 0; stage < stages; ++stage) ring.push_back(device(pipeline, stage) % depth);
  }
  return ring;
}

}  // namespace

std::string_view to_string(ScheduleKind kind) {
  const auto* entry =
      std::find_if(kKindNames.begin(), kKindNames.end(), [&](const auto& e) { return e.first == kind; });
  EVERSTEP_CHECK(entry != kKindNames.end(), "a schedule kind without a name");
  return entry->second;
}

Result<ScheduleKind> parse_schedule_kind(std::string_view text) {
  std::string known;
  for (const auto& [kind, name] : kKindNames) {
    if (name == text) return kind;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return invalid_argument("unknown schedule kind '" + std::string(text) + "'", "one of " + known);
}

const std::vector<ScheduleKind>& all_schedule_kinds() {
  static const std::vector<ScheduleKind> kinds = [] {
    std::vector<ScheduleKind> all;
    for (const auto& entry : kKindNames) all.push_back(entry.first);
    return all;
  }();
  return kinds;
}

Result<Placement> Placement::make(ScheduleKind kind, int depth, int chunks_per_device, int pipelines) {
  const std::string where = "depth " + std::to_string(depth) + " with schedule " + std::string(to_string(kind));
  if (depth < 1) return invalid_argument(where + ": a pipeline needs at least one device");
  switch (kind) {
    case ScheduleKind::kAmdp:
    case ScheduleKind::kAmdpSync: {
      if (!is_amdp_depth(depth)) {
        return invalid_argument(where + ": AMDP needs a depth of 2 or a multiple of 4",
                                "use 1f1b, or two-directions for an even depth");
      }
      const auto device = [&](int pipeline, int stage) { return amdp_device(pipeline, stage, depth); };
      return Placement(kind, depth, depth / 2, depth, device_table(depth, depth / 2, depth, device));
    }
    case ScheduleKind::kTwoDirections: {
      if (depth % 2 != 0) return invalid_argument(where + ": two directions need an even depth", "use 1f1b");
      const auto device = [&](int pipeline, int stage) { return pipeline == 0 ? stage : depth - 1 - stage; };
      return Placement(kind, depth, 2, depth, device_table(depth, 2, depth, device));
    }
    case ScheduleKind::kClockwork:
    case ScheduleKind::kClockworkSync: {
      const int several = pipelines == 0 ? usual_clockwork_pipelines(depth) : pipelines;
      if (!is_clockwork_shape(depth, several)) {
        return invalid_argument(where + ": clockwork has no order for " + std::to_string(several) + " pipelines there",
                                "one pipeline, or a number that goes into the depth an even number of times");
      }
      const int apart = depth / several;
      const auto device = [&](int pipeline, int stage) { return apart * pipeline + stage; };
      return Placement(kind, depth, several, depth, device_table(depth, several, depth, device));
    }
    case ScheduleKind::kInterleaved:
      if (chunks_per_device < 1) return invalid_argument(where + ": a device needs at least one chunk");
      break;
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kGpipe:
    case ScheduleKind::kPipedream2bw:
      chunks_per_device = 1;
      break;
  }
  const int stages = depth * chunks_per_device;
  return Placement(kind, depth, 1, stages, device_table(depth, 1, stages, [](int, int stage) { return stage; }));
}

Placement::Placement(ScheduleKind kind, int depth, int pipelines, int stages, std::vector<int> device_of)
    : kind_(kind),
      depth_(depth),
      pipelines_(pipelines),
      stages_(stages),
      device_of_(std::move(device_of)),
      stages_on_(depth),
      replicas_of_(stages),
      mirror_group_of_(depth, -1),
      is_edge_(depth, false) {
  for (int stage = 0; stage < stages_; ++stage) {
    for (int pipeline = 0; pipeline < pipelines_; ++pipeline) {
      const int device = this->device_of(pipeline, stage);
      stages_on_[device].push_back(stage);
      replicas_of_[stage].push_back(device);
      if (stage == 0) is_edge_[device] = true;
    }
    std::sort(replicas_of_[stage].begin(), replicas_of_[stage].end());
  }
  // Replica sets are either equal or disjoint, so the first unnumbered device of each stage opens the next set.
  int groups = 0;
  for (int stage = 0; stage < stages_; ++stage) {
    if (mirror_group_of_[replicas_of_[stage].front()] >= 0) continue;
    for (const int device : replicas_of_[stage]) mirror_group_of_[device] = groups;
    ++groups;
  }
}

}  // namespace everstep::scheduler
