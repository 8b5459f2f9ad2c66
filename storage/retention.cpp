#include "storage/retention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace everstep::storage {
namespace {

using Candidates = std::vector<RetentionCandidate>;

std::vector<std::size_t> newest_first(const Candidates& candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::greater<>(), [&](std::size_t i) { return candidates[i].sequence; });
  return order;
}

void keep_last(const Candidates& candidates, int count, std::set<std::size_t>& kept) {
  int good = 0;
  for (const std::size_t i : newest_first(candidates)) {
    if (good >= count) return;
    if (candidates[i].damaged) continue;
    kept.insert(i);
    ++good;
  }
}

// The newest, and as many as are to be kept of those it descends from: what lies between a checkpoint and its parent
// was passed over when the job was resumed, and may be damaged.
void keep_ancestors(const Candidates& candidates, int count, std::set<std::size_t>& kept) {
  int good = 0;
  std::int64_t next = 0;
  for (const std::size_t i : newest_first(candidates)) {
    if (next != 0 && candidates[i].sequence != next) continue;
    const bool is_newest = std::exchange(next, candidates[i].parent) == 0;
    if (candidates[i].damaged && !is_newest) continue;
    kept.insert(i);
    if (++good >= count || next == 0) return;
  }
}

void keep_every(const Candidates& candidates, std::int64_t interval, std::set<std::size_t>& kept) {
  if (interval <= 0) return;
  std::map<std::int64_t, std::size_t> first_cuts;
  for (const std::size_t i : newest_first(candidates)) {
    if (candidates[i].damaged || candidates[i].version.value % interval != 0) continue;
    const auto [entry, is_new] = first_cuts.try_emplace(candidates[i].version.value, i);
    if (!is_new && candidates[i].name.position.value < candidates[entry->second].name.position.value) entry->second = i;
  }
  for (const auto& [version, i] : first_cuts) kept.insert(i);
}

void keep_best(const Candidates& candidates, int count, std::set<std::size_t>& kept) {
  std::vector<std::tuple<double, std::int64_t, std::size_t>> measured;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto loss = candidates[i].validation_loss;
    if (loss && std::isfinite(*loss) && !candidates[i].damaged) measured.emplace_back(*loss, candidates[i].sequence, i);
  }
  std::ranges::sort(measured);
  const std::size_t most = std::min(measured.size(), static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t rank = 0; rank < most; ++rank) kept.insert(std::get<std::size_t>(measured[rank]));
}

}  // namespace

std::vector<std::size_t> checkpoints_to_keep(const std::vector<RetentionCandidate>& candidates,
                                             const RetentionOptions& options) {
  std::set<std::size_t> kept;
  keep_last(candidates, options.keep_last, kept);
  keep_ancestors(candidates, options.keep_last, kept);
  keep_every(candidates, options.keep_every, kept);
  keep_best(candidates, options.keep_best, kept);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].pinned) kept.insert(i);
  }
  return {kept.begin(), kept.end()};
}

}  // namespace everstep::storage
