#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"
#include "launcher/cli/command.h"
#include "launcher/cli/process_table.h"
#include "launcher/proof/audit.h"
#include "launcher/rehearse/chaos/promise.h"

namespace everstep::launcher::chaos {

// FENCE by etcd's own count of changes: each commit in its log came before the next generation was opened, and commits
// and generations only go forward. `keys` are all of the job.
Finding check_fence(const std::vector<elastic::KeyValue>& keys);

// What `everstep audit` found, by promise: ONCE, CHAIN, RESTORE. CHAIN also wants the files to know of each commit that
// etcd's log names.
std::vector<Finding> check_audit(const AuditReport& report, const std::vector<elastic::KeyValue>& keys);

// BITS, by `everstep replay`, which has ended in that way and has written that.
Finding check_replay(int wait_status, const std::string& output);

// What may be used once the faults are over, above the most that a worker used when the first generation trained.
struct Allowance {
  std::int64_t resident_bytes = std::int64_t{32} << 20;
  int descriptors = 16;
  int threads = 3;
};

// What there is to say about BOUND, one line each; empty: all is as it should be.
std::vector<std::string> uses_too_much(const std::string& who, const ProcessUse& now, const ProcessUse& first,
                                       const Allowance& allowance);
// Keys of a job that has ended: nothing of members, of connecting, or of a generation before the last.
std::vector<std::string> keys_left(const std::vector<elastic::KeyValue>& keys);
// Files of a job that has ended: what retention keeps, no save that came to nothing in a generation before the last,
// nothing half written.
std::vector<std::string> files_left(const std::filesystem::path& checkpoints, const AuditReport& report, int keeps);

}  // namespace everstep::launcher::chaos
