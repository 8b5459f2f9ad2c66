#include "launcher/elastic/shard_acks.h"

#include <chrono>
#include <thread>
#include <utility>

namespace everstep::launcher {
namespace {

// Short, so that a worker that must leave the generation is not held up.
constexpr std::chrono::milliseconds kCallDeadline{500};
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

ShardAcks::ShardAcks(elastic::KvStore& store, elastic::Keys keys, elastic::Attempt attempt, elastic::Revision opened,
                     WorkerId self)
    : store_(store), keys_(std::move(keys)), attempt_(attempt), opened_(opened), self_(self) {}

void ShardAcks::tell(const FromWorker& message) {
  if (const auto* saved = std::get_if<ShardSaved>(&message)) {
    put(saved->checkpoint, {to_string(saved->shard), "", saved->seconds});
  } else if (const auto* failed = std::get_if<SaveFailed>(&message)) {
    put(failed->checkpoint, {"", failed->error.line(), 0});
  }
}

// Putting the same again changes nothing, so an unknown outcome is simply tried again.
void ShardAcks::put(const storage::CheckpointName& checkpoint, const elastic::AckRecord& ack) {
  const elastic::Txn txn{{elastic::modified_at(keys_.generation(), opened_)},
                         {elastic::put(keys_.ack(attempt_, to_string(checkpoint), self_), to_text(ack))}};
  while (!is_over_) {
    const auto reply = store_.transact(txn, kCallDeadline);
    if (reply) return;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace everstep::launcher
