#pragma once

#include <optional>
#include <vector>

#include "storage/json/document_reader.h"
#include "storage/json/json_reader.h"
#include "storage/ledger.h"

namespace everstep::storage {

// The members of a ledger segment after "document" and "format".
void add_members(const LedgerSegment& segment, Json& document);

// A segment as it stands there, not yet checked. Defaults after a complaint.
LedgerSegment read_ledger_segment(const JsonReader& document, std::optional<Error>& complaint);

// The entries of a ledger, and the member "entries" of any document.
Json entries_json(const std::vector<LedgerEntry>& entries);
std::vector<LedgerEntry> read_entries(DocumentReader& reader);
// Whether an entry has members that the first format does not have.
bool needs_second_format(const std::vector<LedgerEntry>& entries);

}  // namespace everstep::storage
