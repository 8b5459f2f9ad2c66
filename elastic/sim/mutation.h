#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"

namespace everstep::elastic::sim {

// Mistakes that the protocol guards against, made on purpose: each must be found out.
enum class Mutation : std::uint8_t {
  kNone,
  kCommitWithoutGeneration,
  kCommitWithoutHead,
  kOpenWithoutHead,
  kAckBeforeSync,
  kNameWithoutGeneration,
  kRemoveAllButHead,
  kRejoinAsBefore,
  kActOnStaleRead,
  kNoDirectorySync,
  kSyncAgain,
  kFrameOfAnyGeneration,
  kHandshakeWithoutNonce,
  kNeverListAgain,
  kAlwaysRenew,
  kWallClock,
  kCursorPerWorker,
  kSumByArrival,
  kMomentsNotSaved,
  kGradientsDropped,
  kVersionOffByOne,
  kSkipsNotSaved,
  kSkipSetNotSaved,
  kTimeoutIsFailure,
  kBlindEviction,
  kGuardJoinsEarly,
  kOneVersionKept,
  kKeptRunAgain,
};

const std::vector<Mutation>& all_mutations();  // without kNone
std::string_view to_string(Mutation mutation);

// The transaction as a worker with that mistake would have sent it.
Txn mutated(Mutation mutation, const Keys& keys, Txn txn);

}  // namespace everstep::elastic::sim
