#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "storage/catalog.h"
#include "storage/shard.h"
#include "trainer/checkpoints/checkpoint.h"

namespace everstep::trainer {

// What all checkpoints of one run have in common.
struct RunFacts {
  std::string job;
  std::uint64_t lineage = 0;
  Generation generation;
  storage::StoredPlan plan;
  std::string plan_text;             // as ledger entries name it
  std::vector<Position> left_out{};  // minibatches that the run does not train on
  int blocks = 0;
  std::string accumulation;
  std::optional<storage::Head> found;             // the newest checkpoint when it began
  std::vector<storage::CheckpointName> rejected;  // found damaged when it began
  storage::Settings configuration;
  storage::Settings provenance;
};

// What of a plan decides whether a live checkpoint can be continued as if nothing had happened.
storage::StoredPlan stored_plan(const scheduler::Plan& plan);

// Joins the shards of all workers into what is to be committed. `parent` is what the run resumed from or committed
// last. The ledger covers what lies between the two. kInternal if the shards do not fit together.
Result<storage::CommitRequest> assemble_commit(const RunFacts& run, const std::vector<storage::Shard>& shards,
                                               const std::optional<storage::CatalogEntry>& parent,
                                               storage::WriterTag writer);

// How the state of a checkpoint was taken.
CutKind cut_kind_of(const storage::Manifest& manifest);

}  // namespace everstep::trainer
