#include "tests/accelerator/access_checker.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace everstep::accelerator {
namespace {

std::string sentence(const std::string& what, const Moment& when, bool writes, const std::string& earlier,
                     const Moment& earlier_when, bool earlier_writes) {
  return "'" + what + "' on stream " + std::to_string(when.stream) + (writes ? " writes" : " reads") + " what '" +
         earlier + "' on stream " + std::to_string(earlier_when.stream) + (earlier_writes ? " writes" : " reads") +
         ", and nothing orders them";
}

}  // namespace

std::vector<std::string> AccessChecker::note(ByteRange range, bool writes, const Moment& when, const Clock& known,
                                             const std::string& what) {
  if (range.begin >= range.end) return {};
  cut_at(range.begin);
  cut_at(range.end);
  std::set<std::string> found;  // bytes of one buffer have the same story to tell
  const auto begin = segments_.lower_bound(range.begin);
  const auto end = segments_.lower_bound(range.end);
  for (auto each = begin; each != end; ++each) {
    const Segment& segment = each->second;
    if (segment.writer && !known.knows(segment.writer->when)) {
      found.insert(sentence(what, when, writes, *segment.writer->what, segment.writer->when, true));
    }
    if (!writes) continue;
    for (const Use& reader : segment.readers) {
      if (!known.knows(reader.when)) found.insert(sentence(what, when, writes, *reader.what, reader.when, false));
    }
  }
  const Use use{when, std::make_shared<const std::string>(what)};
  if (writes) {
    segments_.erase(begin, end);
    segments_[range.begin] = {range.end, use, {}};
  } else {
    add_reader(range, use, known);
  }
  return {found.begin(), found.end()};
}

void AccessChecker::forget(ByteRange range) {
  cut_at(range.begin);
  cut_at(range.end);
  segments_.erase(segments_.lower_bound(range.begin), segments_.lower_bound(range.end));
}

void AccessChecker::cut_at(std::uintptr_t address) {
  auto next = segments_.lower_bound(address);
  if (next == segments_.begin()) return;
  auto& [begin, segment] = *std::prev(next);
  if (segment.end <= address) return;
  Segment behind = segment;
  segment.end = address;
  segments_.emplace_hint(next, address, std::move(behind));
}

void AccessChecker::add_reader(ByteRange range, const Use& use, const Clock& known) {
  std::uintptr_t place = range.begin;
  for (auto each = segments_.lower_bound(range.begin); place < range.end; ++each) {
    const std::uintptr_t next = each == segments_.end() ? range.end : std::min(each->first, range.end);
    if (place < next) each = segments_.emplace_hint(each, place, Segment{next, std::nullopt, {}});
    std::vector<Use>& readers = each->second.readers;
    // Whoever waits for this reader waits for those that are over before it.
    std::erase_if(readers, [&](const Use& other) { return known.knows(other.when); });
    readers.push_back(use);
    place = each->second.end;
  }
}

}  // namespace everstep::accelerator
