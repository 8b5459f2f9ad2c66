#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/catalog.h"

// How the catalog reads and writes its small documents. One that cannot be read is kDataLoss, but of a newer format
// kInvalidArgument, and kUnavailable if the system refused. A digest of a document is that of the whole file, seal
// included, so that not one bit of it can change unseen.
namespace everstep::storage {

// What failed to be read, as an error about a checkpoint: gone or malformed is damage, refused by the system is not.
Error as_damage(Error error);

Error data_loss(std::string message, std::string hint = {});

// The whole file; with a digest, only if it has that one.
Result<std::string> read_document(const CatalogPorts& ports, const std::string& path,
                                  const std::optional<Digest>& digest);

// A HEAD, or a copy of one: a commit record. kNotFound if there is none.
Result<Head> read_head(const FileSystem& files, const DocumentFormat& documents, const Seal& seal,
                       const std::string& path);

// The manifest that a HEAD or a commit record names, and nothing else.
Result<Manifest> read_manifest(const CatalogPorts& ports, const Head& head);

Result<LedgerSegment> read_ledger_segment(const CatalogPorts& ports, const std::string& path, const Digest& digest);

// Replaces a file so that at every moment, power cuts included, the old or the new text is there. The temporary name
// must be this caller's own.
Status replace_file(FileSystem& files, std::string_view directory, std::string_view temporary, std::string_view name,
                    std::string_view text);

// Makes directories, durably. After a failure none is left that is empty: one whose sync failed would look made to the
// next try, and no later sync would tell that its name is not on disk.
Status make_fresh_directories(FileSystem& files, std::string_view path);

// Writes the commit record of a HEAD unless it is there already, and makes it durable.
Status keep_commit_record(const CatalogPorts& ports, const Head& head);

// Of the last component, and of what is before it.
std::string_view base_name(std::string_view path);
std::string_view parent_path(std::string_view path);

}  // namespace everstep::storage
