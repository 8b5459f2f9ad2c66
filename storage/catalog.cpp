#include "storage/catalog.h"

#include <algorithm>
#include <utility>

#include "storage/catalog_documents.h"
#include "storage/catalog_survey.h"

namespace everstep::storage {

Result<std::unique_ptr<Lock>> Catalog::lock() { return ports_.files.files.lock(kLockName); }

Result<CatalogListing> Catalog::list() const {
  auto survey = survey_catalog(ports_);
  if (!survey) return survey.error();
  CatalogListing listing{{}, {}, std::move(survey->damaged)};
  if (!survey->committed.empty()) listing.newest = survey->committed.front();
  for (const Head& head : survey->committed) {
    auto manifest = read_manifest(ports_, head);
    if (manifest) {
      listing.entries.push_back({head, std::move(*manifest)});
    } else {
      listing.damaged.push_back(
          {directory_of(head.lineage, head.checkpoint), manifest.error(), head.checkpoint, head.sequence});
    }
  }
  return listing;
}

Status Catalog::pin(const CatalogEntry& entry) {
  const auto pinned = is_pinned(entry);
  if (!pinned) return pinned.error();
  const std::string directory = directory_of(entry.head.lineage, entry.head.checkpoint);
  if (!*pinned) EVERSTEP_TRY(write_text(ports_.files.files, join_path(directory, kPinName), ""));
  return ports_.files.files.sync_directory(directory);
}

Status Catalog::unpin(const CatalogEntry& entry) {
  const std::string directory = directory_of(entry.head.lineage, entry.head.checkpoint);
  Status removed = ports_.files.files.remove(join_path(directory, kPinName));
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  return ports_.files.files.sync_directory(directory);
}

Result<bool> Catalog::is_pinned(const CatalogEntry& entry) const {
  const auto files = ports_.files.files.list(directory_of(entry.head.lineage, entry.head.checkpoint));
  if (!files) return files.error();
  return std::find(files->begin(), files->end(), DirectoryEntry{kPinName, false}) != files->end();
}

Result<Generation> Catalog::next_generation() const {
  const auto directory = scan_job_directory(ports_.files.files);
  if (!directory) return directory.error();
  Generation newest;
  for (const CheckpointTrace& trace : directory->traces) newest = std::max(newest, trace.name.generation);
  for (const std::string& file : directory->files) {
    newest = std::max(newest, generation_of_head_temporary(file).value_or(Generation()));
  }
  const auto head = ports_.head.read();
  if (!head && head.error().code != ErrorCode::kDataLoss) return head.error();
  if (head && *head) newest = std::max(newest, (*head)->checkpoint.generation);
  return newest.next();
}

}  // namespace everstep::storage
