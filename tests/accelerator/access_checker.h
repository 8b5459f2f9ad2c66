#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/accelerator/clock.h"

namespace everstep::accelerator {

struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Remembers who last wrote and who has read every byte since, and finds accesses that nothing orders. What it finds
// depends on what is known to be over at an access, not on what happens to be over. Not for threads at once.
class AccessChecker {
 public:
  // Notes that `when` accesses `range`, where everything that `known` knows is over before it begins. Returns a
  // sentence for every earlier access that conflicts with it and is not known to be over.
  std::vector<std::string> note(ByteRange range, bool writes, const Moment& when, const Clock& known,
                                const std::string& what);

  // The bytes change hands: nothing that was done to them before conflicts with anything.
  void forget(ByteRange range);

 private:
  struct Use {
    Moment when;
    std::shared_ptr<const std::string> what;
  };

  // Bytes with the same history. Keyed by where they begin; they never overlap.
  struct Segment {
    std::uintptr_t end = 0;
    std::optional<Use> writer;
    std::vector<Use> readers;  // since then
  };

  using Segments = std::map<std::uintptr_t, Segment>;

  void cut_at(std::uintptr_t address);
  void add_reader(ByteRange range, const Use& use, const Clock& known);

  Segments segments_;
};

}  // namespace everstep::accelerator
