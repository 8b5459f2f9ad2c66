#pragma once

#include <string>

#include "launcher/job/checkpoint_store.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// All that a manifest says, for people: where the cut is, plan, blocks with their files, settings.
std::string details_text(const storage::CatalogEntry& entry, const StoreLocation& location, std::size_t columns = 0);

// The same for programs, with every file and tensor.
storage::Json details_json(const storage::CatalogEntry& entry, const StoreLocation& location);

// "amdp D=4 W=1 M=16, cuts 0 3 6 8 10"
std::string plan_text(const storage::StoredPlan& plan);

}  // namespace everstep::launcher
