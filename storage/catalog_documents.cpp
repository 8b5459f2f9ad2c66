#include "storage/catalog_documents.h"

#include <utility>

namespace everstep::storage {
namespace {

Error about(const std::string& path, const Error& error) {
  return {error.code, "'" + path + "': " + error.message, error.hint};
}

}  // namespace

Error data_loss(std::string message, std::string hint) {
  return {ErrorCode::kDataLoss, std::move(message), std::move(hint)};
}

Error as_damage(Error error) {
  if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalidArgument) {
    error.code = ErrorCode::kDataLoss;
  }
  return error;
}

Result<std::string> read_document(const CatalogPorts& ports, const std::string& path,
                                  const std::optional<Digest>& digest) {
  auto sealed = read_text(ports.files.files, path, kLargestDocument);
  if (!sealed) return as_damage(sealed.error());
  if (digest && !equal_digests(sha256_of(ports.files.hashing, *sealed), *digest)) {
    return data_loss("'" + path + "' is not the document that was committed: its SHA-256 differs");
  }
  auto text = ports.seal.open(*sealed);
  if (!text) return about(path, text.error());
  return text;
}

Result<Head> read_head(const FileSystem& files, const DocumentFormat& documents, const Seal& seal,
                       const std::string& path) {
  const auto sealed = read_text(files, path, kLargestDocument);
  if (!sealed) return sealed.error().code == ErrorCode::kNotFound ? sealed.error() : as_damage(sealed.error());
  const auto text = seal.open(*sealed);
  if (!text) return about(path, text.error());
  auto head = documents.parse_head(*text);
  if (!head) return about(path, head.error());
  return head;
}

Result<Manifest> read_manifest(const CatalogPorts& ports, const Head& head) {
  const std::string path = manifest_path(head.lineage, head.checkpoint, head.writer);
  const auto text = read_document(ports, path, head.manifest);
  if (!text) return text.error();
  auto manifest = ports.documents.parse_manifest(*text);
  if (!manifest) return about(path, manifest.error());
  if (manifest->job != head.job || manifest->lineage != head.lineage || manifest->name != head.checkpoint ||
      manifest->parent != head.parent) {
    return data_loss("'" + path + "' describes another checkpoint than HEAD or commit record do");
  }
  return manifest;
}

Result<LedgerSegment> read_ledger_segment(const CatalogPorts& ports, const std::string& path, const Digest& digest) {
  const auto text = read_document(ports, path, digest);
  if (!text) return text.error();
  auto segment = ports.documents.parse_ledger_segment(*text);
  if (!segment) return about(path, segment.error());
  return segment;
}

Status replace_file(FileSystem& files, std::string_view directory, std::string_view temporary, std::string_view name,
                    std::string_view text) {
  const std::string from = join_path(directory, temporary);
  if (Status removed = files.remove(from); !removed && removed.error().code != ErrorCode::kNotFound) {
    return removed;
  }
  Status written = write_text(files, from, text);
  if (written) written = files.rename(from, join_path(directory, name));
  if (!written) {
    (void)files.remove(from);
    return written;
  }
  return files.sync_directory(directory);
}

Status keep_commit_record(const CatalogPorts& ports, const Head& head) {
  const std::string path = commit_record_path(head.lineage, head.checkpoint);
  const auto there = read_head(ports.files.files, ports.documents, ports.seal, path);
  // One that a process wrote before it died is not yet known to be durable.
  if (there && *there == head) return ports.files.files.sync_directory(parent_path(path));
  const std::string name(base_name(path));
  return replace_file(ports.files.files, parent_path(path), name + ".tmp", name,
                      ports.seal.seal(ports.documents.encode(head)));
}

Status make_fresh_directories(FileSystem& files, std::string_view path) {
  Status made = files.make_directories(path);
  for (std::string_view left = path; !made && !left.empty(); left = parent_path(left)) {
    (void)files.remove_directory(left);
  }
  return made;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace everstep::storage
