#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/catalog.h"
#include "tests/storage/fakes/crash_file_system.h"
#include "tests/storage/test_job.h"

namespace everstep::storage {

struct ScriptOptions {
  bool unique_names = true;               // false: no generation, nonce or random number tells two saves apart
  std::function<Status(TestJob&)> prune;  // null: Catalog::prune
};

// Checkpoints whose commit returned success, in this order.
using Acknowledged = std::vector<CatalogEntry>;

// Two processes one after the other save, commit and prune: live, flush and in-window checkpoints, with files used
// again, one save abandoned, one position saved twice. What fails is tried no more, and the next step follows.
Acknowledged run_script(FileSystem& files, const ScriptOptions& options = {});

// One more process: resumes, saves and commits.
Result<CatalogEntry> resume_and_save(TestJob& job);

// What is wrong after a crash, if anything: the newest acknowledged checkpoint, or a newer one completely, must restore
// to the bytes that were meant; all that is listed must verify; and work must go on, leaving nothing behind.
std::optional<std::string> violation(CrashFileSystem& files, const Acknowledged& acknowledged);

}  // namespace everstep::storage
