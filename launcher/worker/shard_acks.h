#pragma once

#include <atomic>
#include <functional>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/records.h"
#include "trainer/checkpoints/save_word.h"

namespace everstep::launcher {

// How a worker tells the leader that its part of a checkpoint is durable, or that it is not: a key that counts only
// under the generation it was written in.
class ShardAcks {
 public:
  // `opened` is when `gen` was modified for this attempt. `on_waiting` is told, once for each message, why etcd does
  // not take it yet.
  ShardAcks(elastic::KvStore& store, elastic::Keys keys, elastic::Attempt attempt, elastic::Revision opened,
            WorkerId self, std::function<void(const Error&)> on_waiting);

  // From the writer's thread. Tries until etcd answers or give_up() was called; refused means that the generation is
  // over, and that nobody waits for this part any more.
  void tell(const trainer::SaveWord& word);

  // From any thread: the generation is over.
  void give_up() { is_over_ = true; }

 private:
  void put(const storage::CheckpointName& checkpoint, const elastic::AckRecord& ack);

  elastic::KvStore& store_;
  const elastic::Keys keys_;
  const elastic::Attempt attempt_;
  const elastic::Revision opened_;
  const WorkerId self_;
  const std::function<void(const Error&)> on_waiting_;
  std::atomic<bool> is_over_{false};
};

}  // namespace everstep::launcher
