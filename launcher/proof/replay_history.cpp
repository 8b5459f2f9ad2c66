#include "launcher/proof/replay_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/plan_text.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::Damage;
using storage::LedgerSegment;

Result<CatalogEntry> end_of(const storage::CatalogListing& listing, std::optional<std::int64_t> to_step) {
  for (const CatalogEntry& entry : listing.entries) {
    const std::int64_t window = entry.manifest.plan.window;
    if (!to_step || entry.manifest.name.position.value <= *to_step * window) return entry;
  }
  return not_found(to_step ? "there is no checkpoint of step " + std::to_string(*to_step) + " or before"
                           : "there is no checkpoint");
}

// What a checkpoint descends from lies before it, so damage behind the last position that may be the end is no part of
// its history. HEAD lies where the newest does, as far as anybody can tell.
bool lies_behind(const Damage& damage, Position last, const std::optional<storage::Head>& newest) {
  if (damage.name) return damage.name->position > last;
  return newest && newest->checkpoint.position > last;
}

// Nothing that is damaged is stepped over. Without a step the end is HEAD itself, and nothing stands in for it.
Result<CatalogEntry> trusted_end(const storage::CatalogListing& listing, std::optional<std::int64_t> to_step) {
  auto end = end_of(listing, to_step);
  for (const Damage& damage : listing.damaged) {
    const bool is_beyond =
        end && to_step && lies_behind(damage, {*to_step * end->manifest.plan.window}, listing.newest);
    if (is_beyond) continue;
    return Error{damage.error.code, damage.checkpoint + " cannot be replayed: " + damage.error.message,
                 "--to=STEP ends before it; everstep audit tells more"};
  }
  return end;
}

// Segments name the one before by its digest, and a manifest the last one: so checkpoints that other runs fell back
// from are told from those on the way, even where those between were removed.
bool is_on_the_way(const CatalogEntry& entry, const CatalogEntry& end, const std::vector<LedgerSegment>& ledger) {
  if (!entry.manifest.ledger) return entry.manifest.name.position.value == 0;
  return entry.manifest.ledger == end.manifest.ledger ||
         std::any_of(ledger.begin(), ledger.end(),
                     [&](const LedgerSegment& segment) { return segment.before == entry.manifest.ledger; });
}

// From position 0 to the end, without a gap.
Status check_whole(const std::vector<LedgerSegment>& ledger, const storage::Manifest& end) {
  const auto broken = [](const std::string& what) {
    return Error{ErrorCode::kDataLoss, "the ledger: " + what, "everstep audit tells more"};
  };
  Position position;
  for (const LedgerSegment& segment : ledger) {
    if (const Status checked = check(segment, end.plan.window); !checked) return broken(checked.error().message);
    if (segment.begin != position) {
      return broken("a segment begins at position " + std::to_string(segment.begin.value) +
                    ", the one before ends at " + std::to_string(position.value));
    }
    position = segment.end;
  }
  if (position == end.name.position) return {};
  return broken("it ends at position " + std::to_string(position.value) + ", but " + to_string(end.name) +
                " stands at " + std::to_string(end.name.position.value));
}

Result<CommittedEntry> committed_entry(const storage::LedgerEntry& entry) {
  auto plan = scheduler::parse_plan_text(entry.plan);
  if (!plan) {
    return invalid_argument("window " + std::to_string(entry.window) + ": " + plan.error().message, plan.error().hint);
  }
  CommittedEntry committed;
  committed.what = {entry.window,  entry.first,   entry.end,      entry.generation, std::move(*plan),
                    entry.flushed, entry.skipped, entry.left_out, entry.norm_limit, entry.provisional};
  committed.losses = entry.losses;
  return committed;
}

bool begins_on(const CommittedHistory& history, std::int64_t window, auto condition) {
  return std::ranges::any_of(history.entries, [&](const CommittedEntry& entry) {
    return entry.what.window == window && condition(entry.what);
  });
}

bool on_provisional(const trainer::HistoryEntry& entry) { return entry.provisional; }

bool on_previous(const trainer::HistoryEntry& entry) {
  return is_asynchronous(entry.plan.kind) && !entry.flushed && !entry.provisional;
}

// How many of the window's minibatches are in the sums of its provisional step, which whoever ran its end has made.
std::optional<int> summed_in(const CommittedHistory& history, std::int64_t window) {
  std::optional<trainer::HistoryEntry> part;
  for (const auto& [what, losses] : history.entries) {
    if (what.window != window) continue;
    const bool goes_on = part && part->generation == what.generation && part->plan == what.plan;
    if (!goes_on) part = what;
  }
  if (!part) return std::nullopt;
  scheduler::ScheduleRequest request = request_of(part->plan);
  request.first_minibatch = part->first;
  return provisional_minibatches(request);
}

}  // namespace

bool can_start_at(const CommittedHistory& history, const storage::Manifest& manifest) {
  const std::int64_t window = manifest.version.value;
  if (const int inside = manifest.minibatches_into_window(); inside > 0) {
    return !begins_on(history, window + 1, on_provisional) || summed_in(history, window) > inside;
  }
  return (!begins_on(history, window, on_provisional) || manifest.has(storage::StateKind::kProvisional)) &&
         (!begins_on(history, window, on_previous) || manifest.has(storage::StateKind::kPrevious));
}

Result<CommittedHistory> read_history(const storage::Catalog& catalog, std::optional<std::int64_t> to_step) {
  const auto listing = catalog.list();
  if (!listing) return listing.error();
  auto end = trusted_end(*listing, to_step);
  if (!end) return end.error();
  const auto ledger = catalog.ledger(*end);
  if (!ledger) return ledger.error();
  EVERSTEP_TRY(check_whole(*ledger, end->manifest));
  CommittedHistory history;
  for (const LedgerSegment& segment : *ledger) {
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
