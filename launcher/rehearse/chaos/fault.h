#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::launcher::chaos {

enum class FaultKind : std::uint8_t {
  kKillWorker,
  kKillLeader,
  kKillTwo,
  kKillAgain,
  kKillAll,
  kKillAcked,
  kCrashWorker,
  kOutOfMemory,
  kTermWorker,
  kTermKill,
  kStopWorker,
  kStopLeader,
  kJoin,
  kScale,
  kRevokeLease,
  kEtcdKill,
  kEtcdStop,
  kEtcdAway,
  kEtcdRoll,
  kEtcdSplit,
  kFillDisk,
  kSlowDisk,
  kHalfOpen,
  kCorrupt,
  kDelay,
  kCutOff,
  kCutEtcd,
  kCutPeers,
  kThinLine,
  kFlipByte,
  kHang,
  kStray,
};

// What a fault needs before a seed may draw it.
enum class Needs : std::uint8_t {
  kNothing,
  kThreeServers,
  kSmallDisk,  // root, for a file system of its own
  kSlowDisk,   // strace
  kFarHost,    // root, for a network of its own
  kNoMemory,   // root, for a memory cgroup of its own
  kNobody,     // no seed draws it: it breaks a promise, to show that the checks see it
};

// One kind as people write it. A fault has those of the three values that its kind takes, and no others.
struct FaultForm {
  FaultKind kind{};
  std::string_view name;
  std::string_view help;
  bool picks = false;         // pick=N: the worker, counted through those that live, round and round
  std::string_view number{};  // what `number` is called: "count", "by"; empty: it has none
  bool lasts = false;         // for=S
  Needs needs = Needs::kNothing;
};

const std::vector<FaultForm>& all_forms();
const FaultForm& form_of(FaultKind kind);

struct Fault {
  FaultKind kind{};
  int pick = 0;
  int number = 0;
  std::chrono::milliseconds lasts{0};

  bool operator==(const Fault&) const = default;
};

// "stop-worker pick=2 for=4.5"
std::string to_text(const Fault& fault);
// kInvalidArgument for anything that to_text does not make.
Result<Fault> parse_fault(std::string_view text);

// "4.5", and back: seconds with at most three digits behind the point.
std::string seconds_text(std::chrono::milliseconds time);
Result<std::chrono::milliseconds> parse_seconds(std::string_view text);

}  // namespace everstep::launcher::chaos
