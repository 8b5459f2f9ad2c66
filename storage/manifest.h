#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/hashing.h"
#include "storage/tensor_file.h"

namespace everstep::storage {

inline constexpr int kFormatVersion = 1;

// What kind of state a file holds, for one block.
enum class StateKind : std::uint8_t {
  kWeights,      // at the checkpoint's version
  kPrevious,     // the weights one version before: live checkpoints only, those without kProvisional
  kOptimizer,    // both moments, and under bf16 the fp32 master
  kGradients,    // the sums of an unfinished window: cuts inside a window only
  kProvisional,  // what the next window has begun on, made from the version before: live checkpoints only
};

std::string_view to_string(StateKind kind);  // "weights", "previous", "optimizer", …
std::optional<StateKind> parse_state_kind(std::string_view text);

// What a checkpoint is keyed by. Two cuts inside one window are two checkpoints, and a save that is tried again has
// another nonce.
struct CheckpointName {
  Generation generation;
  Position position;
  std::uint32_t nonce = 0;

  bool operator==(const CheckpointName&) const = default;
};

// "g3-p1600-9f3a11c2": the checkpoint's directory. And back; nothing for any other text.
std::string to_string(const CheckpointName& name);
std::optional<CheckpointName> parse_checkpoint_name(std::string_view text);

// Who wrote a file, so that no two writers ever choose one name: the author, and a random number per file.
struct WriterTag {
  std::uint32_t author = 0;  // drawn once by each object that writes
  std::uint32_t random = 0;

  bool operator==(const WriterTag&) const = default;
};

// "1f2e3d4c-9a8b7c6d", and back; nothing for any other text.
std::string to_string(const WriterTag& writer);
std::optional<WriterTag> parse_writer_tag(std::string_view text);

// Refuses what is no name of a job: 1 … 63 lower-case letters, digits and '-', the first one no '-'.
Status check_job_name(std::string_view job);

// One file of a checkpoint. Its path is rebuilt from these fields, never read from anywhere.
struct FileRecord {
  int block = 0;
  StateKind kind = StateKind::kWeights;
  Version version;            // of the state; for gradients: of the weights they belong to
  CheckpointName written_by;  // the checkpoint that wrote it: this one, or the one directly before
  WriterTag writer;
  std::uint64_t size = 0;
  Digest sha256;
  std::vector<TensorSpec> tensors;

  bool operator==(const FileRecord&) const = default;
};

// The order of files in documents: by block, then kind.
inline bool comes_before(const FileRecord& a, const FileRecord& b) {
  return a.block != b.block ? a.block < b.block : a.kind < b.kind;
}

// "<lineage8>/g3-p1600-9f3a11c2/0007-weights-1f2e3d4c-9a8b7c6d.h5", relative to the job's directory.
std::string path_of(std::uint64_t lineage, const FileRecord& file);

// What the file says about itself; equal to what was written if the file is the one meant.
TensorFileSpec spec_of(const std::string& job, const FileRecord& file);

// Where the pipeline stood. All integers and texts, since storage knows no scheduler.
struct StoredPlan {
  std::string schedule;  // "amdp", "1f1b", …
  int depth = 1;
  int chunks_per_device = 2;
  int width = 1;
  int window = 1;
  int preload = 2;
  std::vector<int> cuts;  // block at which each stage starts, and the number of blocks
  int pipelines = 0;      // where the schedule has a choice; 0: it has none
  int lag = 0;            // of the update, in slots
  int provisional = 0;    // super-rounds that its provisional step leaves out; 0: it has none

  bool operator==(const StoredPlan&) const = default;
};

struct StoredLoss {
  int minibatch = 0;  // inside the window
  double loss = 0;

  bool operator==(const StoredLoss&) const = default;
};

using Settings = std::vector<std::pair<std::string, std::string>>;  // names ascending

// A consistent cut of training, whoever wrote it and however many.
struct Manifest {
  std::string job;
  std::uint64_t lineage = 0;
  CheckpointName name;
  Version version;  // windows applied or skipped

  std::int64_t applied = 0;  // updates that were not skipped: what Adam's bias correction counts
  double clip_scale = 1;     // what the last update multiplied its gradient by; 1 if it was skipped
  StoredPlan plan;
  int blocks = 0;
  std::string accumulation = "float32";   // or "fixed48": 64-bit integers, 2^-48 each
  std::vector<StoredLoss> window_losses;  // of the unfinished window's minibatches, ascending

  // Windows that began on a drained pipeline, and those whose gradient was not finite: ascending. The oracle needs
  // them.
  std::vector<std::int64_t> flushed;
  std::vector<std::int64_t> skipped;

  std::optional<double> loss;             // mean of the last window
  std::optional<double> validation_loss;  // of this very state, if it was measured
  std::optional<Digest> parent;           // the manifest this state descends from
  std::optional<Digest> ledger;           // the newest ledger segment, which links to those before
  WriterTag ledger_writer;                // names that segment's file
  Settings configuration;                 // in force when it was written
  Settings provenance;                    // versions of the program and its libraries, kernels of the CPU
  std::vector<FileRecord> files;          // by block, then kind

  // Minibatches of the unfinished window that are in the gradients; 0 at a window's start.
  int minibatches_into_window() const { return static_cast<int>(name.position.value - version.value * plan.window); }
  bool has(StateKind kind) const;
  // Whether the next window had begun: then there are the weights that it has begun on.
  bool is_live() const { return has(StateKind::kPrevious) || has(StateKind::kProvisional); }
  const FileRecord* find(int block, StateKind kind) const;
  std::uint64_t bytes() const;  // of all files

  bool operator==(const Manifest&) const = default;
};

// Refuses what no writer makes: a block or kind missing or twice, tensors of one block that differ between kinds, a
// previous version where gradients are, versions and positions that do not fit, files written by more than one other
// checkpoint, counts and sizes beyond all bounds.
Status check(const Manifest& manifest);

// "<lineage8>/<name>" below the job's directory; in it "manifest-<writer>.json" and "commit.json"; and
// "<lineage8>/ledger/p<end>-<writer>.json". <lineage8> is the first half of the lineage's 16 hexadecimal digits.
std::string lineage_directory(std::uint64_t lineage);
std::string directory_of(std::uint64_t lineage, const CheckpointName& name);
std::string manifest_path(std::uint64_t lineage, const CheckpointName& name, const WriterTag& writer);
std::string commit_record_path(std::uint64_t lineage, const CheckpointName& name);
std::string ledger_path(std::uint64_t lineage, Position end, const WriterTag& writer);

}  // namespace everstep::storage
