#pragma once

#include <functional>
#include <memory>

#include "elastic/brain/head_commit.h"
#include "elastic/kv_store.h"
#include "storage/documents.h"
#include "storage/head.h"

namespace everstep::launcher {

// What a committer may move HEAD under: the generation it commits for, and its leadership.
struct CommitRight {
  elastic::Keys keys;
  elastic::Attempt attempt;
  elastic::Revision generation = 0;                // `gen` was modified then
  elastic::Revision leader = 0;                    // `leader` was created then
  std::function<void(const Error&)> on_waiting{};  // once for a commit that etcd does not take or answer
  std::function<bool()> is_over{};                 // whether to wait no longer for such a one
};

// HEAD as a key of the job. advance() is a transaction that compares generation, leader and the HEAD that was read, so
// a committer that was overtaken is refused (kStaleGeneration) however late it comes; what became of a call that nobody
// answered is found out by sending it again. kDeadlineExceeded: it could not be found out, and it may still happen.
// kUnavailable: it did not happen; HEAD is another one than expected, or the read of it was stale. `mirror`, the HEAD
// file in the job's directory, follows behind, so that tools and a later job find the newest checkpoint without etcd; a
// commit is told to nobody before that. All must outlive what is returned.
std::unique_ptr<storage::HeadStore> make_kv_head_store(elastic::KvStore& store, CommitRight right,
                                                       const storage::DocumentFormat& documents,
                                                       const storage::Seal& seal, storage::HeadStore& mirror);

// Lets the HEAD file name that checkpoint, unless it names it or a newer one. A file that cannot be written now is put
// right by the next commit.
void bring_forward(storage::HeadStore& mirror, const storage::Head& head);

// The key's value for a checkpoint, and what storage knows of it. kDataLoss for a document that is not genuine.
elastic::HeadRecord head_record(const storage::Head& head, const storage::DocumentFormat& documents,
                                const storage::Seal& seal);
Result<storage::Head> stored_head(const elastic::HeadRecord& record, const storage::DocumentFormat& documents,
                                  const storage::Seal& seal);

}  // namespace everstep::launcher
