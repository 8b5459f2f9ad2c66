#include "scheduler/trial_steps.h"

#include <algorithm>

namespace everstep::scheduler {

TrialSteps::TrialSteps(const Schedule& schedule)
    : schedule_(schedule),
      parts_(schedule.slices.size() * schedule.placement.depth()),
      stepped_(schedule.workers.size(), 0) {}

void TrialSteps::copied(int worker, std::int64_t window, Tick now) {
  Part& part = parts_[part_of(window, schedule_.device_of(worker))];
  ++part.copies;
  part.copied = std::max(part.copied, now);
}

bool TrialSteps::come_to(int worker, std::int64_t window) {
  const std::int64_t windows = window - schedule_.request.first_window + 1;
  if (stepped_[worker] >= windows) return false;
  stepped_[worker] = windows;
  return true;
}

std::optional<Tick> TrialSteps::complete_at(std::int64_t window, int stage) const {
  const Placement& placement = schedule_.placement;
  const int last = placement.stages() - 1;
  std::vector<int> owned{stage};
  if (stage == 0 || stage == last) owned = {0, last};  // they may share a parameter
  Tick at = 0;
  for (const int each : owned) {
    const int owner = placement.owner_of(each);
    for (int group = 0; group < schedule_.request.width; ++group) {
      const int worker = group * schedule_.depth() + owner;
      if (stepped_[worker] <= window - schedule_.request.first_window) return std::nullopt;
    }
    const Part& part = parts_[part_of(window, owner)];
    if (part.copies < copies_wanted(owner)) return std::nullopt;
    at = std::max(at, part.copied);
  }
  return at;
}

std::size_t TrialSteps::part_of(std::int64_t window, int device) const {
  const auto slice = static_cast<std::size_t>(window - schedule_.request.first_window);
  return slice * schedule_.depth() + schedule_.placement.mirror_group_of(device);
}

int TrialSteps::copies_wanted(int device) const {
  const Placement& placement = schedule_.placement;
  int members = 0;
  for (int other = 0; other < placement.depth(); ++other) {
    if (placement.mirror_group_of(other) == placement.mirror_group_of(device)) ++members;
  }
  return members * static_cast<int>(placement.stages_on(device).size()) * schedule_.request.width;
}

}  // namespace everstep::scheduler
