#pragma once

#include <memory>
#include <string>

#include "elastic/etcd/channels.h"
#include "elastic/etcd/history_check.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// A watch with a thread of its own. Every connection starts at the present and says so with on_gap: whoever lists then
// has missed nothing, whatever was compacted, lost or restarted in between.
std::unique_ptr<Watch> start_etcd_watch(std::shared_ptr<Channels> channels, std::shared_ptr<HistoryCheck> history,
                                        std::string prefix, WatchSink sink);

}  // namespace everstep::elastic
