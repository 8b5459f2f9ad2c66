#pragma once

#include <variant>

#include "base/ids.h"
#include "base/result.h"
#include "storage/manifest.h"

namespace everstep::trainer {

// What the workers of a run and whoever commits their checkpoints tell each other.

// From every worker: its part of that checkpoint is durable, and described by the shard document of that writer.
struct ShardSaved {
  storage::CheckpointName checkpoint;
  storage::WriterTag shard;
  double seconds = 0;  // since the cut

  bool operator==(const ShardSaved&) const = default;
};

// From a worker that could not write its part.
struct SaveFailed {
  storage::CheckpointName checkpoint;
  Error error;

  bool operator==(const SaveFailed&) const = default;
};

// From worker 0: a save was due there, but not all workers were done with the last one.
struct SaveSkipped {
  Position position;

  bool operator==(const SaveSkipped&) const = default;
};

using SaveWord = std::variant<ShardSaved, SaveFailed, SaveSkipped>;

// To every worker: what became of the checkpoint that they wrote.
struct Verdict {
  enum class Kind {
    kCommitted,
    kAbandoned,  // and never will be: its files may go
    kUnknown,    // the commit may have happened: its files must stay
  };

  storage::CheckpointName checkpoint;
  Kind kind = Kind::kAbandoned;

  bool operator==(const Verdict&) const = default;
};

}  // namespace everstep::trainer
