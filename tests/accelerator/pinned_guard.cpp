#include "tests/accelerator/pinned_guard.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace everstep::accelerator {

void PinnedGuard::begin(InFlight work) {
  const std::size_t begin = work.begin;
  const std::size_t end = work.end;
  in_flight_.push_back(std::move(work));
  set_rights(begin, end);
}

void PinnedGuard::end_known(const Clock& known) {
  const auto ended = std::stable_partition(in_flight_.begin(), in_flight_.end(),
                                           [&](const InFlight& each) { return !known.knows(each.when); });
  std::vector<InFlight> over(std::make_move_iterator(ended), std::make_move_iterator(in_flight_.end()));
  in_flight_.erase(ended, in_flight_.end());
  for (const InFlight& each : over) set_rights(each.begin, each.end);
}

void PinnedGuard::end_all(std::size_t begin, std::size_t end) {
  std::erase_if(in_flight_, [&](const InFlight& each) { return each.begin < end && begin < each.end; });
  set_rights(begin, end);
}

const PinnedGuard::InFlight* PinnedGuard::disturbed_by(std::size_t byte, bool host_writes) const {
  for (const InFlight& each : in_flight_) {
    if (each.begin <= byte && byte < each.end && (each.writes || host_writes)) return &each;
  }
  return nullptr;
}

std::vector<Moment> PinnedGuard::in_flight(std::size_t begin, std::size_t end) const {
  std::vector<Moment> moments;
  for (const InFlight& each : in_flight_) {
    if (each.begin < end && begin < each.end) moments.push_back(each.when);
  }
  return moments;
}

Rights PinnedGuard::rights_of(std::size_t page) const {
  Rights rights = Rights::kAll;
  for (const InFlight& each : in_flight_) {
    if (each.begin >= page + kPage || page >= each.end) continue;
    if (each.writes) return Rights::kNone;
    rights = Rights::kRead;
  }
  return rights;
}

// Neighbours with the same rights are told at once.
void PinnedGuard::set_rights(std::size_t begin, std::size_t end) const {
  std::size_t first = begin / kPage * kPage;
  while (first < end) {
    const Rights rights = rights_of(first);
    std::size_t last = first + kPage;
    while (last < end && rights_of(last) == rights) last += kPage;
    arena_.set_rights(first, last - first, rights);
    first = last;
  }
}

}  // namespace everstep::accelerator
