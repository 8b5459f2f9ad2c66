#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "elastic/records.h"
#include "elastic/sim/disk.h"
#include "elastic/sim/stand_in.h"

namespace everstep::elastic::sim {

// Two cuts at one position are two checkpoints.
struct CheckpointName {
  Generation generation;
  Position position;
  std::uint64_t nonce = 0;

  auto operator<=>(const CheckpointName&) const = default;  // NOLINT(modernize-use-nullptr)
};
std::string to_string(const CheckpointName& name);  // "3-120-9f3a11c2…"; also its directory
std::optional<CheckpointName> parse_checkpoint_name(std::string_view text);

struct FileRef {
  int block = 0;
  std::string path;
  std::string digest;

  bool operator==(const FileRef&) const = default;
};

// One block's state. Says who wrote it, so that no two writers make the same bytes.
struct BlockFile {
  int block = 0;
  BlockState state;
  std::int64_t version = 0;
  std::string writer;
};
std::string to_text(const BlockFile& file);
std::optional<BlockFile> parse_block_file(const std::string& text);

// What one worker adds to a checkpoint.
struct Shard {
  CheckpointName name;
  std::int64_t version = 0;
  std::vector<FileRef> files;
  std::set<std::int64_t> skipped;
  std::vector<Consumed> history;
};
std::string to_text(const Shard& shard);
std::optional<Shard> parse_shard(const std::string& text);

struct Manifest {
  CheckpointName name;
  std::int64_t version = 0;
  std::vector<FileRef> files;
  std::set<std::int64_t> skipped;
  std::string parent = "-";        // digest of the manifest that it descends from
  std::vector<Consumed> consumed;  // since the parent
};
std::string to_text(const Manifest& manifest);
std::optional<Manifest> parse_manifest(const std::string& text);

// What HeadRecord::document says, and the commit record beside the manifest.
struct HeadDocument {
  std::int64_t sequence = 0;
  CheckpointName name;
  std::string manifest;  // digest
  std::string path;      // of the manifest
  std::string previous = "-";
  std::string parent = "-";
  std::string committer;

  bool operator==(const HeadDocument&) const = default;
};
std::string to_text(const HeadDocument& head);
std::optional<HeadDocument> parse_head_document(const std::string& text);
HeadRecord record_of(const HeadDocument& head);

// The checkpoint that HEAD names, every byte of it verified; kDataLoss says what is wrong. `durable`: as after a power
// cut.
struct LoadedCheckpoint {
  Manifest manifest;
  TrainingState state;
};
Result<LoadedCheckpoint> load_checkpoint(const Disk& disk, const HeadDocument& head, bool durable);

}  // namespace everstep::elastic::sim
