#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace everstep::elastic::sim {

// The rows of the fault matrix that concern the control plane. The number is the row's.
enum class Fault : std::uint8_t {
  kKilledComputing = 1,
  kKilledWriting = 2,
  kKilledAfterAck = 3,
  kLeaves = 4,
  kLeavesInAHurry = 5,
  kStoppedPastLease = 6,
  kLeaderStoppedBeforeCommit = 7,
  kReplyLost = 8,
  kLeaderKilled = 9,
  kAllKilled = 10,
  kMostKilled = 11,
  kKilledInRecovery = 12,
  kOutOfMemory = 13,
  kComputeHangs = 15,
  kCutFromStore = 16,
  kCutFromPeers = 17,
  kOneWayCut = 18,
  kLeaderCutFromStore = 19,
  kMinorityPartition = 20,
  kSlowNetwork = 21,
  kHalfOpen = 22,
  kCorruptedFrame = 23,
  kReplayedConnection = 24,
  kKilledInExchange = 25,
  kStoreLeaderLost = 26,
  kStoreRolledOver = 27,
  kStoreAway = 28,
  kCompaction = 29,
  kWatchEventsWrong = 30,
  kStaleRead = 31,
  kLeaseRevoked = 32,
  kStoreReplaced = 34,
  kDiskFull = 35,
  kSyncFails = 36,
  kPowerCut = 37,
  kFileDamaged = 38,
  kFileDeleted = 40,
  kStaleCleanUp = 41,
  kBadGradient = 43,
  kWallClockJumps = 45,
  kFlapping = 47,
  kCrowdJoins = 48,
};

const std::vector<Fault>& all_faults();
std::string_view to_string(Fault fault);  // "worker killed while it computes"
constexpr int number_of(Fault fault) { return static_cast<int>(fault); }

// How often each was injected.
class FaultCounts {
 public:
  void add(Fault fault) { ++counts_[number_of(fault)]; }
  void add(const FaultCounts& other) {
    for (std::size_t at = 0; at < counts_.size(); ++at) counts_[at] += other.counts_[at];
  }
  std::int64_t of(Fault fault) const { return counts_[number_of(fault)]; }

  bool operator==(const FaultCounts&) const = default;

 private:
  std::array<std::int64_t, 49> counts_{};
};

}  // namespace everstep::elastic::sim
