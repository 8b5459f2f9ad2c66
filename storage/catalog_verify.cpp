#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "storage/catalog.h"
#include "storage/catalog_documents.h"
#include "storage/catalog_survey.h"

namespace everstep::storage {
namespace {

Result<LedgerSegment> newest_segment(const CatalogPorts& ports, const Manifest& manifest) {
  const std::string path = ledger_path(manifest.lineage, manifest.name.position, manifest.ledger_writer);
  auto segment = read_ledger_segment(ports, path, *manifest.ledger);
  if (segment && (segment->lineage != manifest.lineage || segment->end != manifest.name.position)) {
    return data_loss("'" + path + "' does not end at the position of its checkpoint");
  }
  return segment;
}

// The segment that ends where `after` begins. Its writer is not known: among those that end there, the digest decides.
Result<LedgerSegment> segment_before(const CatalogPorts& ports, const std::vector<DirectoryEntry>& names,
                                     const LedgerSegment& after) {
  const std::string any_writer = ledger_path(after.lineage, after.begin, {});
  const std::string directory(parent_path(any_writer));
  const std::string start(base_name(any_writer).substr(0, base_name(any_writer).find(to_string(WriterTag()))));
  std::string tried;
  auto name = std::lower_bound(names.begin(), names.end(), start,
                               [](const DirectoryEntry& entry, const std::string& text) { return entry.name < text; });
  for (; name != names.end() && name->name.starts_with(start); ++name) {
    auto segment = read_ledger_segment(ports, join_path(directory, name->name), *after.before);
    if (segment) return segment;
    tried += (tried.empty() ? "" : ", ") + name->name;
  }
  return data_loss("in '" + directory + "' the ledger segment that ends at position " +
                   std::to_string(after.begin.value) + " is " +
                   (tried.empty() ? "missing" : "missing or damaged: its SHA-256 is none of " + tried));
}

// "12, 10": the newest ones.
std::string list_steps(const std::vector<CatalogEntry>& entries) {
  constexpr std::size_t kMostListed = 8;
  std::vector<std::int64_t> steps;
  std::string text;
  for (const CatalogEntry& entry : entries) {
    const std::int64_t step = entry.manifest.version.value;
    if (std::find(steps.begin(), steps.end(), step) != steps.end()) continue;
    if (steps.size() == kMostListed) return text + " and older ones";
    text += (steps.empty() ? "" : ", ") + std::to_string(step);
    steps.push_back(step);
  }
  return text;
}

Error nothing_found(std::optional<Version> step, bool was_there, const std::vector<CatalogEntry>& entries) {
  const std::string which = step ? "no checkpoint at step " + std::to_string(step->value) : "no checkpoint";
  if (!was_there) {
    return not_found("there is " + which, entries.empty() ? "" : "there are those of steps " + list_steps(entries));
  }
  return data_loss(which + " is good: all that there are were damaged", "restore the directory from a copy");
}

}  // namespace

Status Catalog::verify_ledger(const CatalogEntry& entry) const {
  if (!entry.manifest.ledger) return {};
  const auto segment = newest_segment(ports_, entry.manifest);
  if (!segment) return segment.error();
  return {};
}

Status Catalog::verify(const CatalogEntry& entry, const std::function<bool(std::uint64_t bytes)>& progress) const {
  EVERSTEP_TRY(verify_ledger(entry));
  std::uint64_t done = 0;
  for (const FileRecord& file : entry.manifest.files) {
    const Status verified = verify_block_file(ports_.files, entry.manifest.lineage, file);
    if (!verified) return as_damage(verified.error());
    done += file.size;
    if (progress && !progress(done)) return Error{ErrorCode::kCancelled, "verifying was cancelled", ""};
  }
  return {};
}

Result<CatalogEntry> Catalog::newest_accepted(std::optional<Version> step, const Accept& accept,
                                              const std::function<void(const Damage&)>& on_damage) const {
  const auto listing = list();
  if (!listing) return listing.error();
  std::vector<Damage> rejected;
  const CatalogEntry* found = nullptr;
  for (const CatalogEntry& entry : listing->entries) {
    if (step && entry.manifest.version != *step) continue;
    const Status accepted = accept(entry);
    if (accepted) {
      found = &entry;
      break;
    }
    const ErrorCode code = accepted.error().code;
    if (code != ErrorCode::kDataLoss && code != ErrorCode::kUnavailable) return accepted.error();
    rejected.push_back({directory_of(entry.head.lineage, entry.head.checkpoint), accepted.error(),
                        entry.head.checkpoint, entry.head.sequence});
  }
  for (const Damage& damage : listing->damaged) {
    if (found != nullptr && is_older(damage, found->head)) continue;
    if (damage.error.code == ErrorCode::kInvalidArgument) return damage.error;
    if (on_damage) on_damage(damage);
  }
  for (const Damage& damage : rejected) {
    if (on_damage) on_damage(damage);
  }
  if (found != nullptr) return *found;
  return nothing_found(step, !rejected.empty() || (!step && !listing->damaged.empty()), listing->entries);
}

Result<std::vector<LedgerSegment>> Catalog::ledger(const CatalogEntry& entry) const {
  std::vector<LedgerSegment> segments;
  if (!entry.manifest.ledger) return segments;
  auto segment = newest_segment(ports_, entry.manifest);
  if (!segment) return segment.error();
  const std::string directory(parent_path(ledger_path(segment->lineage, segment->end, {})));
  const auto names = ports_.files.files.list(directory);
  if (!names) return names.error();
  segments.push_back(std::move(*segment));
  while (segments.back().before) {
    auto before = segment_before(ports_, *names, segments.back());
    if (!before) return before.error();
    if (before->lineage != segments.back().lineage || before->end != segments.back().begin) {
      return data_loss("a ledger segment in '" + directory + "' does not end where the next one begins");
    }
    segments.push_back(std::move(*before));
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace everstep::storage
