#include "tests/storage/crash_script.h"

#include <algorithm>
#include <set>
#include <utility>

namespace everstep::storage {
namespace {

constexpr RetentionOptions kRetention{.keep_last = 2};

class Process {
 public:
  Process(FileSystem& files, const ScriptOptions& options, Acknowledged& acknowledged)
      : job_(files), options_(options), acknowledged_(acknowledged) {
    found_ = newest_head(job_.catalog());
    if (auto newest = newest_good(job_.catalog())) parent_ = std::move(*newest);
    if (auto generation = job_.catalog().next_generation()) generation_ = *generation;
  }

  TestSave next_save(std::int64_t position) {
    TestSave save;
    save.position = {position};
    save.parent = parent_;
    save.found = found_;
    save.reuse = follows_head_;
    if (options_.unique_names) {
      save.generation = generation_;
      save.nonce = ++nonce_;
    } else {
      save.writer = 1;
    }
    return save;
  }

  void save(std::int64_t position, bool live) {
    TestSave save = next_save(position);
    save.live = live;
    auto entry = job_.save(save);
    follows_head_ = entry.ok();
    if (!entry) return;
    acknowledged_.push_back(*entry);
    parent_ = std::move(*entry);
  }

  void abandon(std::int64_t position) { (void)job_.write(next_save(position)); }

  void prune() {
    if (options_.prune) {
      (void)options_.prune(job_);
    } else {
      (void)job_.catalog().prune(kRetention, generation_);
    }
  }

 private:
  TestJob job_;
  const ScriptOptions& options_;
  Acknowledged& acknowledged_;
  std::optional<Head> found_;
  std::optional<CatalogEntry> parent_;
  Generation generation_{1};
  std::uint32_t nonce_ = 0;
  bool follows_head_ = false;
};

std::optional<std::string> check_listed(TestJob& job, const CatalogListing& listing, const Acknowledged& acknowledged) {
  if (!listing.damaged.empty()) return "damaged: " + listing.damaged.front().error.line();
  for (const CatalogEntry& entry : listing.entries) {
    if (const Status verified = job.catalog().verify_ledger(entry); !verified) return verified.error().line();
    if (const Status same = job.check_content(entry); !same) return same.error().line();
  }
  if (acknowledged.empty()) return std::nullopt;
  const Head& newest = acknowledged.back().head;
  const auto& entries = listing.entries;
  const bool is_listed =
      std::any_of(entries.begin(), entries.end(), [&](const CatalogEntry& entry) { return entry.head == newest; });
  const auto newer = std::count_if(entries.begin(), entries.end(),
                                   [&](const CatalogEntry& entry) { return entry.head.sequence > newest.sequence; });
  if (is_listed || newer >= kRetention.keep_last) return std::nullopt;
  return "the acknowledged checkpoint " + to_string(newest.checkpoint) + " is lost";
}

// Nothing but what the listed checkpoints name, HEAD and the ledger.
std::optional<std::string> check_leftovers(TestJob& job, const CrashFileSystem& files) {
  std::set<std::string> named = {"HEAD"};
  const auto listing = job.catalog().list();
  if (!listing) return listing.error().line();
  for (const CatalogEntry& entry : listing->entries) {
    named.insert(manifest_path(kLineage, entry.head.checkpoint, entry.head.writer));
    named.insert(commit_record_path(kLineage, entry.head.checkpoint));
    for (const FileRecord& file : entry.manifest.files) named.insert(path_of(kLineage, file));
  }
  for (const std::string& path : files.all_files()) {
    if (!named.contains(path) && path.find("/ledger/") == std::string::npos) return "left behind: " + path;
  }
  return std::nullopt;
}

std::optional<std::string> check_progress(TestJob& job, const CrashFileSystem& files) {
  const auto saved = resume_and_save(job);
  if (!saved) return "cannot go on: " + saved.error().line();
  const auto pruned = job.catalog().prune(kRetention, saved->head.checkpoint.generation);
  if (!pruned) return "cannot prune: " + pruned.error().line();
  const auto newest = newest_good(job.catalog());
  if (!newest || newest->head != saved->head) return "what was saved after the crash is not the newest";
  if (const Status same = job.check_content(*newest); !same) return same.error().line();
  const auto ledger = job.catalog().ledger(*newest);
  if (!ledger) return ledger.error().line();
  if (ledger->front().begin != Position{0}) return "the ledger does not begin at the beginning";
  return check_leftovers(job, files);
}

}  // namespace

Acknowledged run_script(FileSystem& files, const ScriptOptions& options) {
  Acknowledged acknowledged;
  {
    Process first(files, options, acknowledged);
    first.save(4, true);
    first.prune();
    first.save(4, false);
    first.save(6, false);
    first.prune();
    first.abandon(7);
    first.save(8, true);
    first.prune();
  }
  Process second(files, options, acknowledged);
  second.save(8, false);
  second.prune();
  second.save(12, true);
  second.prune();
  return acknowledged;
}

Result<CatalogEntry> resume_and_save(TestJob& job) {
  TestSave save;
  save.found = newest_head(job.catalog());
  auto newest = newest_good(job.catalog());
  if (!newest && newest.error().code != ErrorCode::kNotFound) return newest.error();
  if (newest) save.parent = *newest;
  const auto generation = job.catalog().next_generation();
  if (!generation) return generation.error();
  save.generation = *generation;
  save.position = {newest ? (newest->manifest.version.value + 1) * kWindow : kWindow};
  save.nonce = 1000;
  return job.save(save);
}

std::optional<std::string> violation(CrashFileSystem& files, const Acknowledged& acknowledged) {
  TestJob job(files);
  const auto listing = job.catalog().list();
  if (!listing) return "cannot list: " + listing.error().line();
  if (auto wrong = check_listed(job, *listing, acknowledged)) return wrong;
  return check_progress(job, files);
}

}  // namespace everstep::storage
