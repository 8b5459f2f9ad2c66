#pragma once

#include <optional>

#include "storage/json/json_reader.h"
#include "storage/shard.h"

namespace everstep::storage {

// The members of a shard after "document" and "format".
void add_members(const Shard& shard, Json& document);

// A shard as it stands there, not yet checked. Defaults after a complaint.
Shard read_shard(const JsonReader& document, std::optional<Error>& complaint);

}  // namespace everstep::storage
