#pragma once

#include <optional>
#include <vector>

#include "storage/json/document_reader.h"
#include "storage/json/json_reader.h"
#include "storage/manifest.h"

namespace everstep::storage {

// The members of a manifest after "document" and "format".
void add_members(const Manifest& manifest, Json& document);

// A manifest as it stands there, not yet checked. Defaults after a complaint.
Manifest read_manifest(const JsonReader& document, std::optional<Error>& complaint);

// The records of files, and the member "files" of any document.
Json files_json(const std::vector<FileRecord>& files);
// 1 where a document does not name it.
double read_clip_scale(DocumentReader& reader);

std::vector<FileRecord> read_files(DocumentReader& reader);

}  // namespace everstep::storage
