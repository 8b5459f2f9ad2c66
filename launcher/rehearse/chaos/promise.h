#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace everstep::launcher::chaos {

// What must hold of a job, whatever happened to it.
enum class Promise : std::uint8_t {
  kLive,     // soon after the faults there are new checkpoints
  kNoHang,   // all processes end in time, with documented exit codes, and none is left
  kFence,    // nothing of a generation is committed once the next one is open
  kOnce,     // each minibatch counts exactly once
  kChain,    // commits follow each other without a gap, and none is lost
  kRestore,  // each checkpoint that is kept is whole and can be read
  kBits,     // one process that trains the same history again has the same losses and weights
  kBound,    // memory, threads, descriptors, files and keys are no more than they should be
};

std::string_view to_string(Promise promise);  // "LIVE", "NOHANG", …

struct Finding {
  Promise promise{};
  bool holds = false;
  std::string text;  // one line: what was seen

  bool operator==(const Finding&) const = default;
};

// "LIVE     holds   …"
std::string to_text(const Finding& finding);

// One finding for several things that must all hold: what is wrong, or else what was seen.
Finding judge(Promise promise, const std::vector<std::string>& wrong, const std::string& seen);

}  // namespace everstep::launcher::chaos
