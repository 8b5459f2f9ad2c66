#pragma once

#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// The library strings the items that the operations of a branch have read together. Deals them out again: one list per
// operation. Which operation an item belongs to follows from the order of operations and keys, and from what the
// branch itself has put before. `revision` is that of the answer. kDataLoss: the items do not fit the branch.
Result<std::vector<std::vector<KeyValue>>> deal_out_reads(const std::vector<KvOp>& branch,
                                                          const std::vector<KeyValue>& items, Revision revision);

}  // namespace everstep::elastic
