#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// What there is to say about one checkpoint in one row.
struct CheckpointRow {
  storage::CatalogEntry entry;
  bool is_head = false;
  bool is_pinned = false;
  std::optional<std::int64_t> after_fallback_to;  // step of its parent, if that is not the checkpoint before it
  std::optional<std::int64_t> written_at;         // seconds since 1970, as the file system knows it
};

struct CheckpointList {
  std::vector<CheckpointRow> rows;  // newest first
  std::vector<storage::Damage> damaged;
};

Result<CheckpointList> list_checkpoints(CheckpointStore& store, const StoreLocation& location);

// "2026-11-16 16:30:00", in UTC.
std::string time_text(std::int64_t seconds);

// "authenticity: not checked (no --secret-file)", or that it was.
std::string authenticity_line(const StoreLocation& location);
// The same for programs: "checked" or "not checked".
std::string authenticity_word(const StoreLocation& location);

std::string list_text(const CheckpointList& list, const StoreLocation& location, std::size_t columns = 0);
storage::Json list_json(const CheckpointList& list, const StoreLocation& location);

// One checkpoint's numbers, as every command's JSON has them.
storage::Json summary_json(const storage::CatalogEntry& entry);
storage::Json damage_json(const storage::Damage& damage);

}  // namespace everstep::launcher
