#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/catalog.h"

namespace everstep::launcher {

// Which checkpoint a user means: "HEAD" or "newest", a step (the newest at that step), or a name as `checkpoint ls`
// prints it. kNotFound says what there is; kDataLoss if it is there and damaged.
Result<storage::CatalogEntry> choose_checkpoint(const storage::CatalogListing& listing, std::string_view wanted);

}  // namespace everstep::launcher
