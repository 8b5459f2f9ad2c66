#include "scheduler/execution.h"

namespace everstep::scheduler {

ComputeKeys::ComputeKeys(const Schedule& schedule)
    : first_window_(schedule.request.first_window),
      round_size_(schedule.placement.round_size()),
      width_(schedule.request.width),
      stages_(schedule.placement.stages()) {
  std::size_t minibatches = 0;
  for (const WindowSlice& slice : schedule.slices) {
    slice_begin_.push_back(minibatches);
    minibatches += schedule.rounds_in(slice) * round_size_ * width_;
  }
  slice_begin_.push_back(minibatches);
  size_ = minibatches * stages_;
}

bool ComputeKeys::contains(int group, const Op& op) const {
  if (op.window < first_window_) return false;
  const std::int64_t slice = op.window - first_window_;
  if (slice >= std::ssize(slice_begin_) - 1) return false;
  if (op.stage < 0 || op.stage >= static_cast<int>(stages_)) return false;
  if (op.minibatch < 0 || op.minibatch >= static_cast<int>(round_size_) || op.round < 0) return false;
  // Of a window that was resumed at its end nothing but the update is left.
  return op == update_of(op.window) || key(group, op) / stages_ < slice_begin_[slice + 1];
}

}  // namespace everstep::scheduler
