#include "trainer/loop/pending_weights.h"

#include <algorithm>
#include <utility>

namespace everstep::trainer {

template <typename Predicate>
std::optional<WeightsOp> PendingWeights::take_first(const Predicate& fits) {
  const auto found = std::ranges::find_if(pending_, fits, &WeightsOp::op);
  if (found == pending_.end()) return std::nullopt;
  WeightsOp taken = std::move(*found);
  pending_.erase(found);
  return taken;
}

std::optional<WeightsOp> PendingWeights::take_oldest() {
  return take_first([](const scheduler::Op&) { return true; });
}

std::optional<WeightsOp> PendingWeights::take_before(const Next& next) {
  if (pending_.empty()) return std::nullopt;
  const bool is_update = next.op.kind == scheduler::OpKind::kUpdate;
  const auto is_closed = [&](const scheduler::Op& pending) {
    return is_update ? pending.window <= next.op.window : pending.stage == next.op.stage;
  };
  auto closed = next.closes ? take_first(is_closed) : std::nullopt;
  if (closed) return closed;
  return pending_.size() >= most_ || !next.can_begin() ? take_oldest() : std::nullopt;
}

}  // namespace everstep::trainer
