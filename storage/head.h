#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "storage/manifest.h"

namespace everstep::storage {

// Which checkpoint is the newest committed one. The commit record beside a manifest is a copy of the HEAD that named
// it.
struct Head {
  std::int64_t sequence = 0;  // 1 for a job's first checkpoint
  std::string job;
  std::uint64_t lineage = 0;
  CheckpointName checkpoint;
  WriterTag writer;  // of the manifest
  Digest manifest;
  std::optional<Digest> previous;  // the manifest of the HEAD before it
  std::optional<Digest> parent;    // the manifest its state descends from; differs from `previous` after a fallback

  bool operator==(const Head&) const = default;
};

// Refuses what no writer makes: a name that is none, numbers beyond all bounds, a first HEAD that had one before it.
Status check(const Head& head);

// The commit point. A checkpoint exists from the moment that advance() succeeded.
class HeadStore {
 public:
  virtual ~HeadStore() = default;

  // Nothing: no checkpoint was ever committed. kDataLoss: there was one, but what is left cannot be trusted.
  virtual Result<std::optional<Head>> read() const = 0;

  // Moves HEAD from `expected` to `next`, atomically and durably. kStaleGeneration if HEAD is not `expected`; after
  // kUnavailable either may hold, and the caller must read.
  virtual Status advance(const std::optional<Head>& expected, const Head& next) = 0;
};

}  // namespace everstep::storage
