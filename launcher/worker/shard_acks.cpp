#include "launcher/worker/shard_acks.h"

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
                     WorkerId self, std::function<void(const Error&)> on_waiting)
    : store_(store),
      keys_(std::move(keys)),
      attempt_(attempt),
      opened_(opened),
      self_(self),
      on_waiting_(std::move(on_waiting)) {}

void ShardAcks::tell(const trainer::SaveWord& word) {
  if (const auto* saved = std::get_if<trainer::ShardSaved>(&word)) {
    put(saved->checkpoint, {to_string(saved->shard), "", saved->seconds});
  } else if (const auto* failed = std::get_if<trainer::SaveFailed>(&word)) {
    put(failed->checkpoint, {"", failed->error.line(), 0});
  }
}

// Putting the same again changes nothing, so an unknown outcome is simply tried again.
void ShardAcks::put(const storage::CheckpointName& checkpoint, const elastic::AckRecord& ack) {
  const elastic::Txn txn{{elastic::modified_at(keys_.generation(), opened_)},
                         {elastic::put(keys_.ack(attempt_, to_string(checkpoint), self_), to_text(ack))}};
  for (bool is_told = false; !is_over_; is_told = true) {
    const auto reply = store_.transact(txn, kCallDeadline);
    if (reply) return;
    if (!is_told && reply.error().code != ErrorCode::kDataLoss) on_waiting_(reply.error());
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace everstep::launcher
