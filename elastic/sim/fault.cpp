#include "elastic/sim/fault.h"

#include <utility>

namespace everstep::elastic::sim {
namespace {

const std::vector<std::pair<Fault, std::string_view>>& fault_texts() {
  static const std::vector<std::pair<Fault, std::string_view>> rows = {
      {Fault::kKilledComputing, "worker killed while it computes"},
      {Fault::kKilledWriting, "worker killed while it writes its shard"},
      {Fault::kKilledAfterAck, "worker killed after its acknowledgement"},
      {Fault::kLeaves, "worker asked to leave, with time"},
      {Fault::kLeavesInAHurry, "worker asked to leave, killed soon after"},
      {Fault::kStoppedPastLease, "worker stopped past its lease, then continued"},
      {Fault::kLeaderStoppedBeforeCommit, "leader stopped between acknowledgements and commit"},
      {Fault::kReplyLost, "reply of the store lost, or the request late"},
      {Fault::kLeaderKilled, "leader killed at some phase"},
      {Fault::kAllKilled, "all workers killed"},
      {Fault::kMostKilled, "more than half killed within 50 ms"},
      {Fault::kKilledInRecovery, "second death during recovery"},
      {Fault::kOutOfMemory, "worker out of memory"},
      {Fault::kComputeHangs, "compute hangs, keep-alive thread healthy"},
      {Fault::kCutFromStore, "worker cut from the store"},
      {Fault::kCutFromPeers, "worker cut from its peers"},
      {Fault::kOneWayCut, "one-way cut between two workers"},
      {Fault::kLeaderCutFromStore, "leader cut from the store"},
      {Fault::kMinorityPartition, "store's server in a minority"},
      {Fault::kSlowNetwork, "network slow and lossy"},
      {Fault::kHalfOpen, "peer gone without a word"},
      {Fault::kCorruptedFrame, "frame corrupted on its way"},
      {Fault::kReplayedConnection, "frame or handshake of an old generation"},
      {Fault::kKilledInExchange, "worker killed in the update exchange"},
      {Fault::kStoreLeaderLost, "store's leader killed"},
      {Fault::kStoreRolledOver, "store's servers restarted one by one"},
      {Fault::kStoreAway, "store without a quorum for long"},
      {Fault::kCompaction, "compaction under a live watch"},
      {Fault::kWatchEventsWrong, "watch events lost, doubled or old"},
      {Fault::kStaleRead, "stale read"},
      {Fault::kLeaseRevoked, "lease revoked by the server"},
      {Fault::kStoreReplaced, "store wiped or restored from an old snapshot"},
      {Fault::kDiskFull, "disk full"},
      {Fault::kSyncFails, "fsync fails"},
      {Fault::kPowerCut, "power cut"},
      {Fault::kFileDamaged, "committed file damaged"},
      {Fault::kFileDeleted, "committed file deleted"},
      {Fault::kStaleCleanUp, "clean-up interrupted, and finished when it is stale"},
      {Fault::kWallClockJumps, "wall clock jumps an hour"},
      {Fault::kFlapping, "worker flaps"},
      {Fault::kCrowdJoins, "64 workers join at once, some with a wrong spec or secret"},
      {Fault::kBadGradient, "gradient that is no number, of one minibatch always or of one worker once"},
  };
  return rows;
}

}  // namespace

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = [] {
    std::vector<Fault> all;
    for (const auto& [fault, text] : fault_texts()) all.push_back(fault);
    return all;
  }();
  return faults;
}

std::string_view to_string(Fault fault) {
  for (const auto& [one, text] : fault_texts()) {
    if (one == fault) return text;
  }
  return "";
}

}  // namespace everstep::elastic::sim
