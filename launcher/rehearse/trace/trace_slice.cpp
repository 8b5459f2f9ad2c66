#include "launcher/rehearse/trace/trace_slice.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"

namespace everstep::launcher {
namespace {

constexpr std::int64_t kMinute = 60'000;

std::string in_hours(std::int64_t ms) { return number_text(static_cast<double>(ms) / 3.6e6, 3) + " h"; }

// Takes a change back that the same instant made before.
void apply(const scheduler::NodeChange& change, NodeInstant& instant) {
  std::vector<std::string>& opposite = change.is_added ? instant.removed : instant.added;
  if (std::erase(opposite, change.node) > 0) return;
  (change.is_added ? instant.added : instant.removed).push_back(change.node);
}

}  // namespace

int TraceSlice::most_nodes() const {
  auto now = std::ssize(nodes);
  auto most = now;
  for (const NodeInstant& instant : instants) {
    now += std::ssize(instant.added) - std::ssize(instant.removed);
    most = std::max(most, now);
  }
  return static_cast<int>(most);
}

int TraceSlice::removed() const {
  std::ptrdiff_t count = 0;
  for (const NodeInstant& instant : instants) count += std::ssize(instant.removed);
  return static_cast<int>(count);
}

int TraceSlice::removals() const {
  return static_cast<int>(std::count_if(instants.begin(), instants.end(),
                                        [](const NodeInstant& instant) { return !instant.removed.empty(); }));
}

int TraceSlice::added() const {
  std::ptrdiff_t count = 0;
  for (const NodeInstant& instant : instants) count += std::ssize(instant.added);
  return static_cast<int>(count);
}

std::int64_t duration_of(const NodeTrace& trace) {
  return trace.empty() ? 0 : trace.back().time_ms - trace.front().time_ms;
}

Result<TraceSlice> slice_of(const NodeTrace& trace, std::int64_t from_ms, std::int64_t duration_ms) {
  if (from_ms < 0 || duration_ms <= 0 || from_ms + duration_ms > duration_of(trace)) {
    return invalid_argument("the trace lasts " + in_hours(duration_of(trace)) + " and does not cover " +
                                in_hours(from_ms) + " to " + in_hours(from_ms + duration_ms),
                            "choose --from and --hours within it");
  }
  TraceSlice slice{from_ms, duration_ms, {}, {}};
  for (const scheduler::NodeChange& change : trace) {
    const std::int64_t time = change.time_ms - trace.front().time_ms - from_ms;
    if (time >= duration_ms) break;
    if (time <= 0) {
      std::erase(slice.nodes, change.node);
      if (change.is_added) slice.nodes.push_back(change.node);
      continue;
    }
    if (slice.instants.empty() || slice.instants.back().time_ms != time) slice.instants.push_back({time, {}, {}});
    apply(change, slice.instants.back());
  }
  std::erase_if(slice.instants,
                [](const NodeInstant& instant) { return instant.removed.empty() && instant.added.empty(); });
  if (slice.nodes.empty()) {
    return invalid_argument("the trace has no node at " + in_hours(from_ms), "choose another --from");
  }
  return slice;
}

Result<TraceSlice> busiest_slice(const NodeTrace& trace, std::int64_t duration_ms) {
  std::optional<TraceSlice> best;
  const auto busyness = [](const TraceSlice& slice) { return std::pair(slice.instants.size(), slice.removed()); };
  for (std::int64_t from = 0; from + duration_ms <= duration_of(trace); from += kMinute) {
    auto slice = slice_of(trace, from, duration_ms);
    if (slice && (!best || busyness(*slice) > busyness(*best))) best = std::move(slice).value();
  }
  // The one at the start says what is wrong with all of them.
  return best ? Result<TraceSlice>(*std::move(best)) : slice_of(trace, 0, duration_ms);
}

}  // namespace everstep::launcher
