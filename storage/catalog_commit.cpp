#include <set>
#include <string>
#include <utility>

#include "storage/catalog.h"
#include "storage/catalog_documents.h"
#include "storage/catalog_survey.h"

namespace everstep::storage {
namespace {

struct SealedDocument {
  std::string path;
  std::string text;
  Digest digest;
};

SealedDocument sealed(const CatalogPorts& ports, std::string path, std::string text) {
  std::string whole = ports.seal.seal(std::move(text));
  const Digest digest = sha256_of(ports.files.hashing, whole);
  return {std::move(path), std::move(whole), digest};
}

Status check_descent(const CommitRequest& request) {
  const Manifest& manifest = request.manifest;
  const std::string name = to_string(manifest.name);
  if (request.ledger.lineage != manifest.lineage || request.ledger.end != manifest.name.position) {
    return invalid_argument("the ledger segment of " + name +
                            " does not end at its position, or is of another lineage");
  }
  if (!request.parent) return {};
  const Manifest& parent = request.parent->manifest;
  if (parent.job != manifest.job || parent.lineage != manifest.lineage) {
    return invalid_argument("the parent of " + name + ", " + to_string(parent.name) + ", is of another job or lineage");
  }
  if (request.ledger.begin != parent.name.position) {
    return invalid_argument("the ledger segment of " + name + " does not begin where its parent, " +
                            to_string(parent.name) + ", ended");
  }
  return {};
}

// Whoever else commits here has its own idea of what comes next, and of what may be removed. A newest checkpoint of
// this author is fine even if its commit was not known to have succeeded.
Status check_alone(const CommitRequest& request, const CatalogSurvey& survey) {
  if (survey.committed.empty()) return {};
  const Head& newest = survey.committed.front();
  if (newest == request.found || newest.writer.author == request.writer.author) return {};
  return Error{ErrorCode::kStaleGeneration,
               "another run commits to this job: its newest checkpoint is " + to_string(newest.checkpoint) +
                   ", which this run neither found nor made",
               "stop one of the two; what this one has done since its last checkpoint is lost"};
}

// A file of another checkpoint may be named only if the HEAD that is replaced names it: whoever cleans up below that
// HEAD, or has been replaced as leader, never touches what HEAD names.
Status check_reuse(const CommitRequest& request, const CatalogSurvey& survey) {
  const bool follows_head = request.parent && !survey.head_error && survey.stored == request.parent->head;
  for (const FileRecord& file : request.manifest.files) {
    if (file.written_by == request.manifest.name) continue;
    const std::string path = path_of(request.manifest.lineage, file);
    if (!follows_head) {
      return invalid_argument("'" + path + "' may not be used again: its checkpoint is not the HEAD that is replaced",
                              "write the file anew");
    }
    const FileRecord* known = request.parent->manifest.find(file.block, file.kind);
    if (known == nullptr || *known != file) {
      return invalid_argument("'" + path + "' may not be used again: HEAD's manifest does not name just this file",
                              "write the file anew");
    }
  }
  return {};
}

// Somebody may have removed files, or the whole directory, since they were written.
Status check_presence(const FileSystem& files, const Manifest& manifest) {
  std::set<std::string> directories;
  std::set<std::string> present;
  for (const FileRecord& file : manifest.files) {
    const std::string path = path_of(manifest.lineage, file);
    const std::string directory(parent_path(path));
    if (directories.insert(directory).second) {
      const auto entries = files.list(directory);
      if (!entries && entries.error().code != ErrorCode::kNotFound) return entries.error();
      if (entries) {
        for (const DirectoryEntry& entry : *entries) present.insert(join_path(directory, entry.name));
      }
    }
    if (!present.contains(path)) {
      return Error{ErrorCode::kUnavailable, "the file '" + path + "' of the checkpoint is gone before it was committed",
                   "leave the checkpoint directory alone; the next save writes all files again"};
    }
  }
  return {};
}

// Leaves nothing of the checkpoint, and no directory above it, to chance. An earlier process may have made a directory
// and died before its name was durable, hence all of them, every time.
Status write_durably(FileSystem& files, const SealedDocument& ledger, const SealedDocument& manifest) {
  const std::string directory(parent_path(manifest.path));
  const std::string ledger_directory(parent_path(ledger.path));
  EVERSTEP_TRY(make_fresh_directories(files, ledger_directory));
  EVERSTEP_TRY(write_text(files, ledger.path, ledger.text));
  EVERSTEP_TRY(write_text(files, manifest.path, manifest.text));
  EVERSTEP_TRY(files.sync_directory(ledger_directory));
  EVERSTEP_TRY(files.sync_directory(directory));
  EVERSTEP_TRY(files.sync_directory(parent_path(directory)));
  return files.sync_directory("");
}

// When it is unknown whether HEAD moved, it is read; and if it did, it is written once more, since only that proves
// that the move is durable.
Status move_head(HeadStore& store, const std::optional<Head>& from, const Head& next) {
  Status moved = store.advance(from, next);
  if (moved || moved.error().code != ErrorCode::kUnavailable) return moved;
  const auto now = store.read();
  if (!now || *now != next) return moved;
  return store.advance(next, next);
}

}  // namespace

Status Catalog::make_directory(std::uint64_t lineage, const CheckpointName& name) {
  return make_fresh_directories(ports_.files.files, directory_of(lineage, name));
}

Result<CatalogEntry> Catalog::commit(const CommitRequest& request) {
  EVERSTEP_TRY(check_descent(request));
  const auto survey = survey_catalog(ports_);
  if (!survey) return survey.error();
  if (survey->head_error && survey->head_error->code != ErrorCode::kDataLoss) return *survey->head_error;
  EVERSTEP_TRY(check_alone(request, *survey));
  EVERSTEP_TRY(check_reuse(request, *survey));

  CatalogEntry entry{{}, request.manifest};
  Manifest& manifest = entry.manifest;
  LedgerSegment segment = request.ledger;
  segment.before = request.parent ? request.parent->manifest.ledger : std::nullopt;
  EVERSTEP_TRY(check(segment, manifest.plan.window));
  const SealedDocument ledger =
      sealed(ports_, ledger_path(manifest.lineage, segment.end, request.writer), ports_.documents.encode(segment));
  manifest.parent.reset();
  if (request.parent) manifest.parent = request.parent->head.manifest;
  manifest.ledger = ledger.digest;
  manifest.ledger_writer = request.writer;
  EVERSTEP_TRY(check(manifest));
  const std::string text = ports_.documents.encode(manifest);
  // What could be written but not read would be found out when it is needed.
  if (const auto read = ports_.documents.parse_manifest(text); !read) return invalid_argument(read.error().message);
  const SealedDocument document = sealed(ports_, manifest_path(manifest.lineage, manifest.name, request.writer), text);

  entry.head = {1, manifest.job, manifest.lineage, manifest.name, request.writer, document.digest, {}, manifest.parent};
  if (!survey->committed.empty()) {
    entry.head.sequence = survey->committed.front().sequence + 1;
    entry.head.previous = survey->committed.front().manifest;
  }
  FileSystem& files = ports_.files.files;
  EVERSTEP_TRY(check_presence(files, manifest));
  EVERSTEP_TRY(write_durably(files, ledger, document));
  // HEAD's own record may be missing after a crash; without it, that checkpoint would be forgotten now. And once HEAD
  // has moved, nothing undoes the commit: the next one writes the record if this one cannot.
  if (!survey->committed.empty()) (void)keep_commit_record(ports_, survey->committed.front());
  EVERSTEP_TRY(move_head(ports_.head, survey->stored, entry.head));
  (void)keep_commit_record(ports_, entry.head);
  return entry;
}

}  // namespace everstep::storage
