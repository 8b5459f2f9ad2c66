#include "storage/ledger.h"

#include "storage/bounds.h"

namespace everstep::storage {
namespace {

Status check_entry(const LedgerEntry& entry, Position expected, int window) {
  const std::string place = "window " + std::to_string(entry.window) + ", minibatches [" + std::to_string(entry.first) +
                            ", " + std::to_string(entry.end) + ")";
  if (entry.first < 0 || entry.first >= entry.end || entry.end > window) {
    return invalid_argument(place + ": no range of a window of " + std::to_string(window));
  }
  if (entry.window != expected.value / window || entry.first != expected.value % window) {
    return invalid_argument(place + ": expected what follows position " + std::to_string(expected.value));
  }
  if (entry.losses.size() != static_cast<std::size_t>(entry.end - entry.first)) {
    return invalid_argument(place + ": has " + std::to_string(entry.losses.size()) + " losses");
  }
  int least = entry.first;
  for (const int minibatch : entry.left_out) {
    if (minibatch < least || minibatch >= entry.end || entry.losses[minibatch - entry.first] != 0) {
      return invalid_argument(place + ": minibatch " + std::to_string(minibatch) + " cannot have been left out");
    }
    least = minibatch + 1;
  }
  if (entry.norm_limit < 0 || (entry.norm_limit > 0 && !entry.skipped)) {
    return invalid_argument(place + ": a limit of the gradient's norm without a window that was skipped for it");
  }
  if (entry.provisional && entry.flushed) {
    return invalid_argument(place + ": a window that began drained began on no provisional weights");
  }
  if (const Status status = check_name("plan", entry.plan, kLongestPlan); !status) {
    return invalid_argument(place + ": " + status.error().message);
  }
  if (const Status status = check_range("generation", entry.generation.value, 0, kMostGenerations); !status) {
    return invalid_argument(place + ": " + status.error().message);
  }
  return {};
}

}  // namespace

Status check(const LedgerSegment& segment, int window) {
  EVERSTEP_TRY(check_range("the window", window, 1, kLargestWindow));
  EVERSTEP_TRY(check_range("the segment's begin", segment.begin.value, 0, kLastPosition));
  EVERSTEP_TRY(check_range("the segment's end", segment.end.value, segment.begin.value, kLastPosition));
  Position position = segment.begin;
  for (const LedgerEntry& entry : segment.entries) {
    EVERSTEP_TRY(check_entry(entry, position, window));
    position.value += entry.end - entry.first;
    if (position.value > segment.end.value) {
      return invalid_argument("window " + std::to_string(entry.window) + " goes on beyond the segment's end at " +
                              std::to_string(segment.end.value));
    }
  }
  if (position == segment.end) return {};
  return invalid_argument("nothing is recorded between position " + std::to_string(position.value) +
                          " and the segment's end at " + std::to_string(segment.end.value));
}

}  // namespace everstep::storage
