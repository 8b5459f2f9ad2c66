#include "trainer/checkpoints/commit_assembly.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace everstep::trainer {
namespace {

using storage::CommitRequest;
using storage::LedgerEntry;
using storage::Manifest;
using storage::Shard;

using Parent = std::optional<storage::CatalogEntry>;
using Losses = std::map<int, double>;  // by minibatch of the window

Error contradiction(const std::string& what) {
  return {ErrorCode::kInternal, "the parts of a checkpoint do not fit together: " + what, "please report it"};
}

Status check_agreement(const RunFacts& run, const std::vector<Shard>& shards) {
  for (const Shard& shard : shards) {
    if (shard.job != run.job || shard.lineage != run.lineage) return contradiction("one is of another job");
    const Shard& first = shards.front();
    if (shard.name != first.name || shard.version != first.version || shard.applied != first.applied ||
        shard.clip_scale != first.clip_scale) {
      return contradiction(to_string(shard.name) + " is not " + to_string(first.name));
    }
  }
  return {};
}

// What the parent knows about the minibatches of that window before it was cut.
Losses losses_of_parent(const Parent& parent, std::int64_t window) {
  Losses losses;
  if (!parent || parent->manifest.version.value != window) return losses;
  for (const auto& [minibatch, loss] : parent->manifest.window_losses) losses[minibatch] = loss;
  return losses;
}

Losses losses_of_unfinished_window(const std::vector<Shard>& shards, const Parent& parent) {
  Losses losses = losses_of_parent(parent, shards.front().version.value);
  for (const Shard& shard : shards) {
    for (const auto& [minibatch, loss] : shard.window_losses) losses[minibatch] = loss;
  }
  return losses;
}

std::vector<LedgerEntry> history_of(const std::vector<Shard>& shards) {
  std::vector<LedgerEntry> history;
  for (const Shard& shard : shards) history.insert(history.end(), shard.history.begin(), shard.history.end());
  return history;
}

// Mean of the last finished window, as far as it is known and finite. Several generations may have worked on it.
std::optional<double> last_loss(const std::vector<LedgerEntry>& history, const Parent& parent, int window) {
  const auto last =
      std::find_if(history.rbegin(), history.rend(), [&](const auto& entry) { return entry.end == window; });
  if (last == history.rend()) return parent ? parent->manifest.loss : std::nullopt;
  Losses losses = losses_of_parent(parent, last->window);
  for (const LedgerEntry& entry : history) {
    if (entry.window != last->window) continue;
    for (int i = entry.first; i < entry.end; ++i) losses[i] = entry.losses[i - entry.first];
  }
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0,
                                     [](double so_far, const auto& loss) { return so_far + loss.second; });
  const double mean = sum / static_cast<double>(losses.size());
  return std::isfinite(mean) ? std::optional(mean) : std::nullopt;
}

// What this generation ran of the unfinished window: `history` tells of those before it.
LedgerEntry unfinished_entry(const RunFacts& run, const Shard& shard, const Losses& losses,
                             const std::vector<LedgerEntry>& history) {
  LedgerEntry entry;
  entry.window = shard.version.value;
  if (!history.empty() && history.back().window == entry.window) entry.first = history.back().end;
  entry.end = static_cast<int>(losses.size());
  entry.generation = run.generation;
  entry.plan = run.plan_text;
  entry.flushed = shard.began_drained;
  entry.provisional = shard.began_provisional;
  for (const auto& [minibatch, loss] : losses) {
    if (minibatch >= entry.first) entry.losses.push_back(loss);
  }
  for (const Position& position : run.left_out) {
    const std::int64_t minibatch = position.value - entry.window * run.plan.window;
    const bool is_inside = entry.first <= minibatch && minibatch < entry.end;
    if (is_inside) entry.left_out.push_back(static_cast<int>(minibatch));
  }
  return entry;
}

// The part of an entry that lies in [begin, end), which may be empty.
LedgerEntry clipped(LedgerEntry entry, std::int64_t begin, std::int64_t end, int window) {
  const std::int64_t start = entry.window * window;
  const auto first = static_cast<int>(std::clamp<std::int64_t>(begin - start, entry.first, entry.end));
  const auto last = static_cast<int>(std::clamp<std::int64_t>(end - start, first, entry.end));
  entry.losses.erase(entry.losses.begin() + (last - entry.first), entry.losses.end());
  entry.losses.erase(entry.losses.begin(), entry.losses.begin() + (first - entry.first));
  entry.first = first;
  entry.end = last;
  std::erase_if(entry.left_out, [&](int minibatch) { return minibatch < first || minibatch >= last; });
  return entry;
}

storage::LedgerSegment segment_of(const RunFacts& run, const Manifest& manifest, const Parent& parent,
                                  std::vector<LedgerEntry> entries) {
  storage::LedgerSegment segment;
  segment.lineage = run.lineage;
  segment.begin = parent ? parent->manifest.name.position : Position{0};
  segment.end = manifest.name.position;
  for (LedgerEntry& entry : entries) {
    LedgerEntry part = clipped(std::move(entry), segment.begin.value, segment.end.value, run.plan.window);
    if (part.first < part.end) segment.entries.push_back(std::move(part));
  }
  return segment;
}

// Ascending, each once.
void add_window(std::vector<std::int64_t>& windows, std::int64_t window) {
  const auto place = std::lower_bound(windows.begin(), windows.end(), window);
  if (place == windows.end() || *place != window) windows.insert(place, window);
}

// A window that was continued after its first minibatch began elsewhere, and that is where its flush is known.
void list_windows(Manifest& manifest, const std::vector<LedgerEntry>& entries) {
  for (const LedgerEntry& entry : entries) {
    if (entry.flushed && entry.first == 0) add_window(manifest.flushed, entry.window);
    if (entry.skipped) add_window(manifest.skipped, entry.window);
  }
}

std::vector<storage::FileRecord> files_of(const std::vector<Shard>& shards) {
  std::vector<storage::FileRecord> files;
  for (const Shard& shard : shards) files.insert(files.end(), shard.files.begin(), shard.files.end());
  std::sort(files.begin(), files.end(), storage::comes_before);
  return files;
}

Manifest describe_run(const RunFacts& run, const Shard& shard) {
  Manifest manifest;
  manifest.job = run.job;
  manifest.lineage = run.lineage;
  manifest.name = shard.name;
  manifest.version = shard.version;
  manifest.applied = shard.applied;
  manifest.clip_scale = shard.clip_scale;
  manifest.validation_loss = shard.validation_loss;
  manifest.plan = run.plan;
  manifest.blocks = run.blocks;
  manifest.accumulation = run.accumulation;
  manifest.configuration = run.configuration;
  manifest.provenance = run.provenance;
  return manifest;
}

}  // namespace

storage::StoredPlan stored_plan(const scheduler::Plan& plan) {
  const scheduler::ScheduleRequest request = request_of(plan);
  storage::StoredPlan stored;
  stored.schedule = to_string(request.kind);
  stored.depth = request.depth;
  stored.chunks_per_device = request.chunks_per_device;
  stored.width = request.width;
  stored.window = request.window;
  stored.preload = request.preload;
  stored.pipelines = request.pipelines;
  stored.lag = request.lag;
  stored.provisional = request.provisional;
  stored.cuts = plan.cuts;
  return stored;
}

Result<CommitRequest> assemble_commit(const RunFacts& run, const std::vector<Shard>& shards, const Parent& parent,
                                      storage::WriterTag writer) {
  EVERSTEP_CHECK(!shards.empty(), "a checkpoint has at least one shard");
  EVERSTEP_TRY(check_agreement(run, shards));
  CommitRequest request;
  request.writer = writer;
  request.parent = parent;
  request.found = run.found;
  Manifest& manifest = request.manifest;
  manifest = describe_run(run, shards.front());
  manifest.files = files_of(shards);

  std::vector<LedgerEntry> entries = history_of(shards);
  manifest.loss = last_loss(entries, parent, run.plan.window);
  if (parent) {
    manifest.flushed = parent->manifest.flushed;
    manifest.skipped = parent->manifest.skipped;
  }
  if (const int into_window = manifest.minibatches_into_window(); into_window > 0) {
    const Losses losses = losses_of_unfinished_window(shards, parent);
    if (std::ssize(losses) != into_window || losses.rbegin()->first != into_window - 1) {
      return contradiction("losses are known of " + std::to_string(losses.size()) + " minibatches, not " +
                           std::to_string(into_window));
    }
    for (const auto& [minibatch, loss] : losses) manifest.window_losses.push_back({minibatch, loss});
    entries.push_back(unfinished_entry(run, shards.front(), losses, entries));
  }
  request.ledger = segment_of(run, manifest, parent, std::move(entries));
  list_windows(manifest, request.ledger.entries);
  if (const Status checked = check(request.ledger, run.plan.window); !checked) {
    return contradiction(checked.error().message);
  }
  return request;
}

CutKind cut_kind_of(const storage::Manifest& manifest) {
  if (manifest.is_live()) return CutKind::kLive;
  return manifest.minibatches_into_window() > 0 ? CutKind::kInWindow : CutKind::kFlush;
}

}  // namespace everstep::trainer
