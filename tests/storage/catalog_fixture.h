#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/storage/fakes/crash_file_system.h"
#include "tests/storage/test_job.h"

namespace everstep::storage {

// A job with checkpoints at the given positions, each the child of the one before.
struct CatalogFixture {
  CrashFileSystem files;
  TestJob job{files};
  std::vector<CatalogEntry> saved;
  std::uint32_t nonce = 0;

  CatalogEntry save(TestSave save) {
    save.nonce = ++nonce;
    if (!save.found) save.found = newest_head(job.catalog());
    const auto entry = job.save(save);
    EVERSTEP_CHECK(entry.ok(), entry.ok() ? "" : entry.error().line());
    saved.push_back(*entry);
    return *entry;
  }

  CatalogEntry save(std::int64_t position) {
    TestSave next;
    next.position = {position};
    if (!saved.empty()) next.parent = saved.back();
    return save(next);
  }

  std::vector<std::int64_t> listed() {
    std::vector<std::int64_t> positions;
    const auto listing = job.catalog().list();
    EVERSTEP_CHECK(listing.ok(), "a listing never fails here");
    for (const CatalogEntry& entry : listing->entries) positions.push_back(entry.manifest.name.position.value);
    return positions;
  }

  std::vector<Damage> told;
  Result<CatalogEntry> newest_good(std::optional<Version> step = {}) {
    told.clear();
    return storage::newest_good(job.catalog(), step, [&](const Damage& damage) { told.push_back(damage); });
  }

  std::string directory(const CatalogEntry& entry) const { return directory_of(kLineage, entry.head.checkpoint); }
  std::string manifest(const CatalogEntry& entry) const {
    return manifest_path(kLineage, entry.head.checkpoint, entry.head.writer);
  }
  std::string record(const CatalogEntry& entry) const { return commit_record_path(kLineage, entry.head.checkpoint); }
  std::string first_file(const CatalogEntry& entry) const { return path_of(kLineage, entry.manifest.files.front()); }
};

}  // namespace everstep::storage
