#include "trainer/update/replica_check.h"

#include <algorithm>
#include <map>
#include <utility>

namespace everstep::trainer {
namespace {

struct Replica {
  int worker = 0;
  std::uint64_t hash = 0;
};

// The owner in the first group comes first.
std::vector<Replica> replicas_of(const scheduler::Schedule& schedule, const std::vector<UpdateRecord>& records,
                                 int stage) {
  std::vector<Replica> replicas;
  for (int worker = 0; worker < static_cast<int>(records.size()); ++worker) {
    const std::vector<int> stages = schedule.placement.stages_on(schedule.device_of(worker));
    const auto chunk = std::find(stages.begin(), stages.end(), stage) - stages.begin();
    if (chunk < std::ssize(stages)) replicas.push_back({worker, records[worker].weight_hashes[chunk]});
  }
  const int owner = schedule.placement.owner_of(stage);
  const auto place =
      std::find_if(replicas.begin(), replicas.end(), [&](const Replica& one) { return one.worker == owner; });
  std::rotate(replicas.begin(), place, place + 1);
  return replicas;
}

}  // namespace

std::optional<WrongReplica> find_wrong_replica(const scheduler::Schedule& schedule,
                                               const std::vector<UpdateRecord>& records) {
  for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
    const std::vector<Replica> replicas = replicas_of(schedule, records, stage);
    std::map<std::uint64_t, int> votes;
    for (const Replica& one : replicas) ++votes[one.hash];
    // max_element keeps the first of equals: the owner's.
    const auto right = std::max_element(replicas.begin(), replicas.end(), [&](const Replica& a, const Replica& b) {
      return votes.at(a.hash) < votes.at(b.hash);
    });
    const auto wrong =
        std::find_if(replicas.begin(), replicas.end(), [&](const Replica& one) { return one.hash != right->hash; });
    if (wrong != replicas.end()) return WrongReplica{wrong->worker, stage};
  }
  return std::nullopt;
}

Error error_of(const WrongReplica& wrong) {
  return {ErrorCode::kDataLoss,
          "the weights of stage " + std::to_string(wrong.stage) + " changed in the memory of worker " +
              std::to_string(wrong.worker) + ": other replicas have others",
          "its memory may be faulty"};
}

}  // namespace everstep::trainer
