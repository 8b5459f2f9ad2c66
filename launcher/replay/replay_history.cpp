#include "launcher/replay/replay_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/plan_text.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::LedgerSegment;

Result<CatalogEntry> end_of(const storage::CatalogListing& listing, std::optional<std::int64_t> to_step) {
  for (const CatalogEntry& entry : listing.entries) {
    const std::int64_t window = entry.manifest.plan.window;
    if (!to_step || entry.manifest.name.position.value <= *to_step * window) return entry;
  }
  if (!listing.damaged.empty()) return listing.damaged.front().error;
  return not_found(to_step ? "there is no checkpoint of step " + std::to_string(*to_step) + " or before"
                           : "there is no checkpoint");
}

// Segments name the one before by its digest, and a manifest the last one: so checkpoints that other runs fell back
// from are told from those on the way, even where those between were removed.
bool is_on_the_way(const CatalogEntry& entry, const CatalogEntry& end, const std::vector<LedgerSegment>& ledger) {
  if (!entry.manifest.ledger) return entry.manifest.name.position.value == 0;
  return entry.manifest.ledger == end.manifest.ledger ||
         std::any_of(ledger.begin(), ledger.end(),
                     [&](const LedgerSegment& segment) { return segment.before == entry.manifest.ledger; });
}

Result<CommittedEntry> committed_entry(const storage::LedgerEntry& entry) {
  auto plan = scheduler::parse_plan_text(entry.plan);
  if (!plan) {
    return invalid_argument("window " + std::to_string(entry.window) + ": " + plan.error().message, plan.error().hint);
  }
  CommittedEntry committed;
  committed.what = {entry.window,     entry.first,   entry.end,    entry.generation,
                    std::move(*plan), entry.flushed, entry.skipped};
  committed.losses = entry.losses;
  return committed;
}

}  // namespace

Result<CommittedHistory> read_history(const storage::Catalog& catalog, std::optional<std::int64_t> to_step) {
  const auto listing = catalog.list();
  if (!listing) return listing.error();
  auto end = end_of(*listing, to_step);
  if (!end) return end.error();
  const auto ledger = catalog.ledger(*end);
  if (!ledger) return ledger.error();
  CommittedHistory history;
  for (const LedgerSegment& segment : *ledger) {
    if (const Status checked = check(segment, end->manifest.plan.window); !checked) {
      return Error{ErrorCode::kDataLoss, "the ledger: " + checked.error().message, "everstep audit tells more"};
    }
    for (const storage::LedgerEntry& entry : segment.entries) {
      auto committed = committed_entry(entry);
      if (!committed) return committed.error();
      history.entries.push_back(std::move(*committed));
    }
  }
  for (const CatalogEntry& entry : listing->entries) {
    if (is_on_the_way(entry, *end, *ledger)) history.kept.emplace(entry.manifest.name.position, entry);
  }
  history.end = std::move(*end);
  return history;
}

}  // namespace everstep::launcher
