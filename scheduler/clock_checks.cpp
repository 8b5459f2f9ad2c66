#include "scheduler/clock_checks.h"

#include <limits>
#include <utility>
#include <vector>

#include "scheduler/clockwork.h"
#include "scheduler/version_checks.h"

namespace everstep::scheduler {
namespace {

class SlotTable {
 public:
  explicit SlotTable(const Schedule& schedule)
      : schedule_(schedule), clock_(schedule.depth(), schedule.placement.pipelines(), schedule.request.lag) {
    std::int64_t rounds = 0;
    int segment = -1;
    for (const WindowSlice& slice : schedule.slices) {
      if (schedule.starts_drained(slice.window)) {
        rounds = 0;
        ++segment;
      }
      // Orders are made for whole windows, also where one is left early.
      const WindowSlice whole{slice.window, slice.first, schedule.request.window, true};
      windows_.push_back({segment, rounds, schedule.rounds_in(whole)});
      rounds += windows_.back().rounds;
    }
  }

  // Segment, and four times the slot; updates and trial steps stand between two slots.
  std::pair<int, Clock::Slot> time_of(const Op& op) const {
    const auto slice = static_cast<std::size_t>(op.window - schedule_.request.first_window);
    const Window& window = windows_[slice];
    if (op.kind == OpKind::kUpdate) {
      const bool ends_segment = slice + 1 == windows_.size() || windows_[slice + 1].segment != window.segment;
      const Clock::Slot slot = ends_segment ? 0 : clock_.update(windows_[slice + 1].first_round);
      return {window.segment, ends_segment ? std::numeric_limits<Clock::Slot>::max() : 4 * slot + 2};
    }
    if (op.kind == OpKind::kTrialStep) {
      return {window.segment, 4 * clock_.round_length() * (window.first_round + window.rounds) - 3};
    }
    const int pipeline = schedule_.pipeline_of(op);
    const std::int64_t round = window.first_round + op.round;
    return {window.segment, 4 * (op.kind == OpKind::kForward ? clock_.forward(pipeline, round, op.stage)
                                                             : clock_.backward(pipeline, round, op.stage))};
  }

 private:
  struct Window {
    int segment = 0;               // drains before it
    std::int64_t first_round = 0;  // since the last of them
    std::int64_t rounds = 0;
  };

  const Schedule& schedule_;
  Clock clock_;
  std::vector<Window> windows_;
};

}  // namespace

Status check_clock(const Schedule& schedule) {
  if (!is_clockwork(schedule.request.kind)) return {};
  const SlotTable table(schedule);
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const Op* before = nullptr;
    for (const Op& op : schedule.workers[worker]) {
      if (!is_compute(op) && op.kind != OpKind::kUpdate && op.kind != OpKind::kTrialStep) continue;
      if (before != nullptr && table.time_of(op) <= table.time_of(*before)) {
        return broken(at(worker, op) + " comes after " + to_string(*before) + ", which has a later slot");
      }
      before = &op;
    }
  }
  return {};
}

}  // namespace everstep::scheduler
